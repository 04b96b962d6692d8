"""How what is stored is read by what shows it."""
