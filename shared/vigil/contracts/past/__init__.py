"""What a conversation begins with that was said elsewhere."""
