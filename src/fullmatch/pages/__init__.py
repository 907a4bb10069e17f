"""HTML pages that are one file each: frame, escaped markup and colors; needs no torch."""
