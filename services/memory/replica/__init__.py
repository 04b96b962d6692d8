"""What one replica makes of the log: its projection, its vectors, and making them anew."""
