"""One file a command; each imports what is heavy only when it runs."""
