"""A small page on this machine for labeling pictures, and the table that it fills."""
