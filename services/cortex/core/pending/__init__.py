"""What a loop waits for that others decide: sessions that it started, people whom it asked."""
