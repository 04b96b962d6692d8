"""Conversations that were led elsewhere, and are imported: to read, and to go on with (ADR 75)."""
