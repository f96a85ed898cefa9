"""What is not to be made, and what was said about consent."""
