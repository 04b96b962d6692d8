"""What the rehearsal model answers with, and the words it shares. Pure."""

from __future__ import annotations

from typing import Any, Final

from vigil.contracts import Row, TextBlock

from ...core.context.replied import MARK

WHAT_MAX: Final = 500
"""Characters of what somebody asks for that are taken over."""
SAID_MAX: Final = 1000
"""Characters of what memory found that an answer tells."""
CALLS_MAX: Final = 20
"""Tool calls in one answer; more follow in the next."""
LISTED_MAX: Final = 20
ABOUT: Final = (
    "I am the rehearsal model, a stand-in until a real model is configured; I only know a few "
    'phrases. Try "remind me in 20 seconds to stretch", "check back in 30 seconds", '
    '"what is pending", "never mind", "remember that my locker code is 4711" or, in any other '
    'conversation, "what is my locker code?", and "research my locker code in the background".'
)
RESEARCH: Final = "Research: "
"""Begins the task of a worker that looks something up."""

Call = tuple[str, dict[str, Any]]
"""A tool's name and its input."""
Reply = tuple[str, list[Call]]
"""What is said, and which tools are called."""


def text_of(row: Row) -> str:
    """Return the texts of a row as one, without what they reply to."""
    texts = (block.text for block in row.blocks if isinstance(block, TextBlock))
    return " ".join(text for text in texts if not text.startswith(MARK))


def first_words(text: str) -> str:
    """Return how a text begins, in 80 characters at the most."""
    words = " ".join(text[:400].split())
    return f"{words[:79]}…" if len(words) > 80 else words
