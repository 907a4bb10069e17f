"""A run: built from a config, started, resumed, finished, and measured."""
