"""What settings and requests are made of: sections, bodies, ranges, secrets, variables."""
