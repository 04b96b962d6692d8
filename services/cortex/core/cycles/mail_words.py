"""Whom a mail is from and what it's called, where others' words stand beside ours. Pure."""

from __future__ import annotations

from typing import Final

from vigil.contracts.mail import MailToRead, OfferedMail

QUOTED_LENGTH_MAX: Final = 120


def written_by(mail: MailToRead | OfferedMail) -> str:
    """Return who wrote a mail, as it says: in brackets stands an address that is one.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 20, tzinfo=UTC)
    >>> written_by(MailToRead(author="", name="Ann <ann@a.example>", who="other", came_at=at))
    'Ann (ann@a.example) (no address)'
    """
    name = mail.name.translate(_OF_NAME)
    if not mail.author:
        return f"{name} (no address)" if name else "(no sender)"
    return f"{name} <{mail.author}>" if name else mail.author


def quoted(subject: str) -> str:
    """Return what something says that it's about, in quotes, which it can't close.

    >>> quoted("Review”, which you wanted;\\n“x")
    "“Review', which you wanted; 'x”"
    """
    text = " ".join(subject.split()).translate(_OF_SUBJECT) or "(no subject)"
    text = text if len(text) <= QUOTED_LENGTH_MAX else text[: QUOTED_LENGTH_MAX - 1] + "…"
    return f"“{text}”"


_OF_SUBJECT: Final = str.maketrans(dict.fromkeys("“”„‟❝❞〝〞＂″", "'"))
_OF_NAME: Final = _OF_SUBJECT | str.maketrans('<>;:"', "(),.'")
"""Else a subject could end its quotes, or a name its mail, and go on as another one."""
