"""What a message brings along of the channel that it came over."""
