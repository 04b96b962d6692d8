"""What the handlers of a process share: what it knows, holds open and counts."""
