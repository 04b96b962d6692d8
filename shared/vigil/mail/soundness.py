"""Whether all programs read the head of a mail alike: the server that vouches for it, and we. Pure.

A signature (DKIM) covers of a field that stands twice the lower one, and of the fields those that
its writer named. So whoever has a mail of somebody's may put a second Subject, Message-ID or To on
top, and it still passes; and a stray CR hides a field from one program that another one sees. No
mail program of people writes such heads (RFC 5322, 3.6), so what has one proves nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_ONCE: Final = """
    from sender reply-to to cc date message-id in-reply-to references subject mime-version
    content-type content-transfer-encoding
    """
ONCE: Final = frozenset(_ONCE.split())
"""Fields that stand once at most, in lower case."""
_FIELD: Final = re.compile(rb"([!-9;-~]+)[ \t]*:")
_PARTLY_SIGNED: Final = re.compile(r"(?:^|;)\s*l\s*=", re.IGNORECASE)
_ODD: Final = re.compile(r"[\"\\();:,\[\]\s]")


def fault_of(head: bytes) -> str:
    """Return what of a head may be read in two ways; empty: nothing.

    >>> fault_of(b"From: a@b.example\\r\\nSubject: 1\\r\\nsubject: 2\\r\\n\\r\\n")
    'it has two subject'
    >>> fault_of(b"From: a@b.example\\r\\nSubject: 1\\r\\n 2\\r\\n\\r\\n")
    ''
    """
    lines = head.replace(b"\r\n", b"\n")
    if b"\r" in lines or b"\0" in lines:
        return "its head has a stray CR or NUL"
    names: Counter[str] = Counter()
    for line in lines.rstrip(b"\n").split(b"\n"):
        if not line.strip():
            return "its head has a blank line"
        if line[:1] in b" \t":
            continue
        field = _FIELD.match(line)
        if field is None:
            return "its head has a line that is no field"
        names[field[1].decode().lower()] += 1
    twice = sorted(name for name in ONCE if names[name] > 1)
    return f"it has two {twice[0]}" if twice else ""


def fault_of_signatures(signatures: list[str]) -> str:
    """Return why a signature doesn't vouch for all of a mail: anybody may write on below it.

    >>> fault_of_signatures(["v=1; d=b.example; l=120; b=x"])
    'its signature covers only a part of it'
    """
    is_part = any(map(_PARTLY_SIGNED.search, signatures))
    return "its signature covers only a part of it" if is_part else ""


def fault_of_envelope(return_paths: list[str]) -> str:
    """Return why who sent it can't stand in a field of the server's, which names them: some servers
    leave quotes away there, and what is in them looks like the server's own word.

    >>> fault_of_envelope(["<ann@b.example>"]), fault_of_envelope([])
    ('', '')
    """
    path = return_paths[0].strip().strip("<>") if return_paths else ""
    return "its envelope names no plain sender" if _ODD.search(path) else ""
