"""What a person trusts beyond what is configured."""
