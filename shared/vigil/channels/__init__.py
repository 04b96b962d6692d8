"""Channels, the ways to people beside the socket: what a kind of them is, and which there are."""
