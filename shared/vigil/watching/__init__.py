"""What may be watched, or kept up with, as it is written and as a record."""
