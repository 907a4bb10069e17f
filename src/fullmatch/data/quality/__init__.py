"""What is wrong with data, and what is done about it."""
