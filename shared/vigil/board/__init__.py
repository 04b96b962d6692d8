"""The board as its readers and writers have it: entries read, and what it is the truth of kept."""
