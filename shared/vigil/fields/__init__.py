"""What settings are made of: the base of sections, numbers in their ranges, secrets."""
