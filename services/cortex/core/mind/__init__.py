"""The mind: what an agent does between conversations, one look after the other."""
