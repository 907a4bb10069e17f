"""Find problems in a data set, and clean it before training."""
