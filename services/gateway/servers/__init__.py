"""Servers whose tools agents use, and the catalogue that they are found in."""
