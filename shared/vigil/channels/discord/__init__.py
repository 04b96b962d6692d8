"""The kind `discord`: a bot of Discord both ways, by its REST interface and its gateway
(docs/discord.md, ADR 60).

What decides is pure and apart: `happenings` (what came), `composition` (what is sent). Around it
are `wire`, `gateway`, `sender` and `listener`.
"""
