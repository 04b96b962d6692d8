"""The rehearsal model as who writes bulletins: it says so, and repeats some notes. Pure."""

from __future__ import annotations

from typing import Final

from vigil.texts.bars import BAR

from .reply import LISTED_MAX

REHEARSED: Final = "Rehearsed: until a model is configured, a bulletin only repeats some notes."


def text(material: str) -> str:
    """Return a text of the first notes.

    >>> text("The notes, by kind:\\n\\n| Facts:\\n| - Ann moves.").splitlines()[1:]
    ['- Ann moves.']
    """
    notes = [line.removeprefix(BAR) for line in material.splitlines() if line.startswith(BAR)]
    return "\n".join([REHEARSED, *[one for one in notes if one.startswith("- ")][:LISTED_MAX]])
