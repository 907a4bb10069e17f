"""Everything that exists for a GPU."""
