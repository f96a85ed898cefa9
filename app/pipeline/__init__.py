"""A RenderSpec becomes a plan: stages over windows of frames."""
