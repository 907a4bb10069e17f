"""What every page shares: its colors, and HTML that is escaped."""
