"""Claims of speed, memory and likeness, each made by a script and kept as a table."""
