"""Channels that only tell one person something: `ntfy`, and `apprise` for everything else
(docs/notices.md)."""
