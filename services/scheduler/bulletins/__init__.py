"""Bulletins: what an agent knows and has to do for a person, kept on a page (SPEC C-2)."""
