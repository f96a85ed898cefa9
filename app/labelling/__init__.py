"""Marks that say a picture was made: written last, read back, never optional."""
