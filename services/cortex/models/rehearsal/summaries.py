"""The rehearsal model as who writes merged summaries anew: it joins the notes. Pure."""

from __future__ import annotations

from vigil.texts.bars import BAR


def joined(material: str) -> str:
    """Return the notes on one line.

    >>> joined("The notes:\\n\\n| 2026-11-20: Ann moves.\\n| 2026-11-21: To Graz.")
    '2026-11-20: Ann moves. 2026-11-21: To Graz.'
    """
    notes = [line.removeprefix(BAR) for line in material.splitlines() if line.startswith(BAR)]
    return " ".join(notes)
