"""Networks: what the manifest says of them, how they are installed, and the sessions that run them."""
