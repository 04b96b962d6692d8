"""Letters, and the sources that people trust."""
