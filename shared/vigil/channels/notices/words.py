"""What a channel tells that only tells one person something. Pure."""

from __future__ import annotations

from typing import Final

from ...contracts import Said
from ...mail.letter import clean
from ...subjects import SessionKey
from ..answers import NotTaken
from ..mail.composition import OUTSIDE

CUT: Final = "… (the rest is in the conversation)"


def not_theirs(said: Said, user: str) -> NotTaken | None:
    """Return the refusal of a message that isn't for who gets what is said there; None: it is."""
    if SessionKey.parse(said.session_key).user == user:
        return None
    return NotTaken(reason=f"the channel is of {user} alone", is_final=True)


def shortened(said: Said, bytes_max: int) -> str:
    """Return what is said, cut to what fits.

    >>> from datetime import UTC, datetime
    >>> said = Said(id="e", session_key="ann:vigil:main", text="é" * 99, at=datetime.now(UTC),
    ...             caused_by="", turn_seq=1)
    >>> len(shortened(said, 60).encode()) <= 60, shortened(said, 60).endswith(CUT)
    (True, True)
    """
    text = clean(said.text).strip() or "…"
    if said.is_tainted:
        text = f"({OUTSIDE})\n\n{text}"
    data = text.encode("utf-8", "ignore")
    if len(data) <= bytes_max:
        return data.decode()
    return data[: bytes_max - len(CUT.encode())].decode("utf-8", "ignore") + CUT
