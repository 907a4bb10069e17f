"""Files that may come from someone else: regular, of a bounded size, not nested too deeply."""
