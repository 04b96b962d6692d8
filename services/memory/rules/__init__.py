"""What is decided of memories by what they say and when: no store, no clock."""
