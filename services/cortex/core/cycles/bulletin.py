"""The text of a bulletin: what a model made of what is known, checked and cut (SPEC C-2). Pure.

The model is asked once, and knows nothing but the material, which may be trusted: so its text can't
name more than that. What is none, ends the session as failed, and the bulletin stays as it is.
"""

from __future__ import annotations

from typing import Final

from vigil.contracts.board import BulletinBasis, MadeText

from ...model import ModelAnswer
from ..context.offers import TRUNCATING
from ..draft import Draft
from ..work.loop_end import end_loop

PURPOSE: Final = "bulletin"
"""What its loops are marked with."""
BYTES_MAX: Final = 48 * 1024
"""The most bytes of a text, whatever counts as a word in its language."""


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Take the answer as the text, and end."""
    draft.update_loop(calls=draft.loop.calls + 1, retries=0)
    draft.usage.append(answer.usage)
    basis = basis_of(draft)
    text = bounded(answer.text, basis.words_max)
    if answer.stop_reason == "refusal":
        draft.note("refusal", "the model declined to answer")
    elif not text:
        draft.note("model_failed", "the answer holds no text")
    else:
        if answer.stop_reason in TRUNCATING or len(text) < len(plain(answer.text)):
            draft.note("truncated", f"more than {basis.words_max} words, or than it may write")
        draft.bulletin = MadeText(text=text, basis=basis)
    end_loop(draft, "failed" if draft.bulletin is None else "silent")


def basis_of(draft: Draft) -> BulletinBasis:
    """Return of what the session makes a text."""
    start = draft.state.start
    if start is None or start.bulletin is None:
        raise AssertionError("a session without a basis was begun")
    return start.bulletin


def bounded(said: str, words_max: int) -> str:
    """Return the first lines of a text, so many that it has no more words than that; of a line
    that is longer by itself its beginning.

    >>> bounded("# What is up\\n\\nAnn moves.\\nTo Graz.", 5)
    'What is up\\nAnn moves.'
    >>> bounded("word " * 9, 3)
    'word word word'
    """
    kept: list[str] = []
    words = size = 0
    for line in plain(said).split("\n"):
        words += len(line.split())
        size += len(line.encode()) + 1
        if words > words_max or size > BYTES_MAX:
            if not kept:
                begun = " ".join(line.split()[:words_max]).encode()[:BYTES_MAX]
                kept.append(begun.decode(errors="ignore"))
            break
        kept.append(line)
    return "\n".join(kept)


def plain(said: str) -> str:
    """Return a text without empty lines, and without what could pose as a heading of the prompt
    that shows it."""
    lines = (line.replace("\0", "").strip().lstrip("#").strip() for line in said.splitlines())
    return "\n".join(line for line in lines if line)
