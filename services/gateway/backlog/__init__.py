"""How much may wait: of a session, and of a person."""
