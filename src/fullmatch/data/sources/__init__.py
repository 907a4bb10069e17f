"""Every way pictures come in: benchmarks, folders, tables and arrays."""
