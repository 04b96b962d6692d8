"""What a person may spend in a day, as they are told of it and change it; and how much of that one
session may hand down to another."""
