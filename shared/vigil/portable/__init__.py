"""What a person has, in files that other programs can read, and back from there."""
