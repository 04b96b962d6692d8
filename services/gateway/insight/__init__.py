"""What is to be known of a session beside what was said: calls of models, its gates, its tokens."""
