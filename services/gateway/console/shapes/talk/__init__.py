"""What stands in a conversation beside what was said, and in the list of them."""
