"""Brings the source files of models to this machine: out of wheels, from https addresses, from its own disk."""
