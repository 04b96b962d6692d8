"""Marks that every service heeds: a person who is erased, a deleted conversation, a paused agent.

Entries of the bucket CONFIG, each with the moment it was set.
"""
