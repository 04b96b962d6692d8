"""Connections that are kept up, and calls that stay open while a person is asked."""
