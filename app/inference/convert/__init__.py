"""Rewrites that turn published model files into plain ONNX with a free batch."""
