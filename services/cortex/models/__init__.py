"""Whoever thinks: models behind two wires, or the rehearsal model."""
