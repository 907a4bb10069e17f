"""The run folder: every file in it, read and written in one place."""
