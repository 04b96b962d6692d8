"""What runs beside something else in the same process."""
