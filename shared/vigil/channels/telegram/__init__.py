"""The kind `telegram`: a bot of Telegram both ways, by the Bot API (docs/telegram.md, ADR 56).

What decides is pure and apart: `happenings` (what came), `composition` (what is sent). Around it
are `wire`, `sender` and `listener`, which need the library of the extra `telegram`.
"""
