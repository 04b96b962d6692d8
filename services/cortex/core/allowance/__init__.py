"""What a person may spend in a day, as they are told of it and change it; and what a session may
hand down to those that it starts."""
