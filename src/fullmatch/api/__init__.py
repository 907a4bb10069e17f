"""The Python API: what each command does, as functions that return values."""
