"""What people see while it works: bars, notes, tables and results."""
