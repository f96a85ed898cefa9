"""Jobs that survive: one database file."""
