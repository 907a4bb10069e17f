"""Readers for every kind of input: benchmarks, folders, CSV files and arrays."""
