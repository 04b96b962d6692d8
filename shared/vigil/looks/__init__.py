"""What may be looked at again and again, as it is written and as a record."""
