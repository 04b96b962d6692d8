"""Signals as clients see them: Server-Sent Events (SPEC C-4, P-5)."""
