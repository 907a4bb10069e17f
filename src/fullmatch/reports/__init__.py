"""Reports on run folders: a page for one run, a comparison of several, charts; needs no torch."""
