"""Image stores: images read by position from memory, picture files or Arrow."""
