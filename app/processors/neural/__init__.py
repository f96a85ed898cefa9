"""Swap networks of the public zoo: what goes in, what comes out, and how much of it shows."""
