"""Kinds of sessions that are asked one thing and have no tools: a module each, as beside. Pure."""
