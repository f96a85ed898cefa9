"""FaceDock: face swap and face enhancement, several people at once, each with their own face."""

__version__ = "0.1.0"
