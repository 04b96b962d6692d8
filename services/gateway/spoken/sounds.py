"""What a sound is, by its first bytes: endpoints go by the ending of its name. Pure."""

from __future__ import annotations

from typing import Final

_BEGINS: Final = (
    (0, b"OggS", "ogg"),
    (4, b"ftyp", "m4a"),
    (0, b"\x1aE\xdf\xa3", "webm"),
    (8, b"WAVE", "wav"),
    (0, b"fLaC", "flac"),
    (0, b"ID3", "mp3"),
    *((0, frame, "mp3") for frame in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    *((0, frame, "aac") for frame in (b"\xff\xf1", b"\xff\xf9")),
)
"""Where which bytes stand in what. The last five begin a frame of MPEG audio, in no container."""


def ending_of(data: bytes) -> str:
    """Return the ending of a sound's name; empty: it's none that is known.

    >>> ending_of(b"OggS\\0"), ending_of(b"\\0\\0\\0 ftypM4A "), ending_of(b"%PDF-1.7")
    ('ogg', 'm4a', '')
    """
    found = (name for at, mark, name in _BEGINS if data[at : at + len(mark)] == mark)
    return next(found, "")
