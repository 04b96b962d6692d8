"""What a note says, as a sentence and as the end of a story. Pure."""

from __future__ import annotations

from vigil.contracts import Note
from vigil.contracts.notes import note_words

from .cutting import clip


def told(note: Note, *, is_named: bool = True) -> str:
    """Return the sentence of a note; one of a code that isn't known here tells itself.

    `is_named`: what the note is about has a name that tells something, as a follow-up has.

    >>> told(Note(code="void", text="the person spoke first", subject="tea"))
    '“tea” became void: the person spoke first.'
    """
    about = f"“{clip(note.subject, 80)}”" if note.subject and is_named else "It"
    return note_words(note.code).sentence.format(text=note.text.rstrip("."), about=about)
