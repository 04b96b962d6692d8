"""What servers ask in the middle of a call: of a person, or of a model."""
