"""What settings are made of: sections, numbers in their ranges, secrets, variables."""
