"""Reports of run folders: files in, one page or picture out; no torch anywhere."""
