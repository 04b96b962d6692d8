"""Whom people know: lists, vCard files and CardDAV collections (docs/contacts.md, ADR 53).

What decides is pure and apart: `section` (what is configured), `record` (what is kept, and who is
found in it). `cards` reads vCards and `carddav` asks a server; only these import the libraries
for that. `source` reads one source, `kept` has what the bucket CONFIG holds.
"""
