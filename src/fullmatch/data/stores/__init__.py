"""Images by position: in memory, in files, in Arrow."""
