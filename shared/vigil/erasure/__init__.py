"""Erasing a person from streams, files and memory, and the proof of it (SPEC X-8)."""
