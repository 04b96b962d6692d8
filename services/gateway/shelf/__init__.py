"""What a list of conversations is made of: where somebody wrote last, what one read, titles."""
