"""What of a message its writer only quotes: words of others, though they sent them. Pure.

As mail programs and chats write it: lines behind ``>``, with the line before them that says whose
they are, and all below the line, or the head, that a forwarded message begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MARK: Final = re.compile(r"[ \t]*>")
_LINE_MAX: Final = 300
"""Characters of a line that says whose words follow."""
_SAYS_WHOSE: Final = re.compile(
    r"\b(wrote|writes|said|schrieb|a écrit|escribió|ha scritto|scrisse|schreef|escreveu)\b"
    r"[^\n]*:[ \t]*$",
    re.IGNORECASE,
)
_BEGINS_ONE: Final = re.compile(r"\b(On|Am|Le|El|Il|Op|Em)\b[^\n]*\d")
"""Where a mail program says whose, and breaks the line."""
_BELOW: Final = re.compile(
    r"^[ \t]*[-_*]{2,}[ \t]*(Original|Forwarded|Ursprüngliche|Weitergeleitete|Message|Mensaje|"
    r"Messaggio|Oorspronkelijk|Doorgestuurd|Mensagem)\b[^\n]*[-_*:][ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)

_FIELD: Final = re.compile(r"[ \t]*\*?([^\W\d_]{2,12}):\*?[ \t]+\S", re.IGNORECASE)
_WRITER: Final = frozenset(["from", "von", "de", "da", "van"])
_DAYS: Final = "sent date gesendet datum envoyé enviado fecha inviato data verzonden"
_DAY: Final = frozenset(_DAYS.split())


def unquoted(text: str) -> str:
    """Return a message without what it quotes.

    >>> unquoted("What does he want?\\n\\nOn 27 Nov 2026 Eve <eve@b.org> wrote:\\n> Pay me.\\nHm.")
    'What does he want?\\n\\n\\nHm.'
    >>> unquoted("Send this to Ben:\\n> Hello!"), unquoted("1 > 0")
    ('Send this to Ben:\\n', '1 > 0')
    """
    if (below := _BELOW.search(text)) is not None:
        text = text[: below.start()]
    text = _above_head(text)
    if ">" not in text:
        return text
    kept: list[str] = []
    is_quote = False
    for line in text.split("\n"):
        was_quote, is_quote = is_quote, _MARK.match(line) is not None
        if not is_quote:
            kept.append(line)
        elif not was_quote:
            kept = [*_without_whose(kept), ""]
    return "\n".join(kept)


def names_writer_and_day(lines: Iterable[str]) -> bool:
    """Whether lines are fields that say from whom something is, and when.

    >>> names_writer_and_day(["From: Eve", "Sent: Monday"]), names_writer_and_day(["To: Ben"])
    (True, False)
    """
    names = {found[1].lower() for line in lines if (found := _FIELD.match(line))}
    return bool(names & _WRITER and names & _DAY)


def _above_head(text: str) -> str:
    """Return what stands above the head of an older mail: lines that say from whom, and when. Who
    only orders one to be sent names no sender and no day.

    >>> _above_head("See below\\nFrom: Eve\\nSent: Monday\\nTo: me\\n\\nPay me")
    'See below\\n'
    >>> _above_head("Send a mail\\nTo: Ben\\nSubject: Hi")
    'Send a mail\\nTo: Ben\\nSubject: Hi'
    """
    names: set[str] = set()
    start = at = 0
    for line in text.splitlines(keepends=True):
        field = _FIELD.match(line)
        if field is None:
            names, start = set(), at + len(line)
        else:
            names.add(field[1].lower())
        if names & _WRITER and names & _DAY:
            return text[:start]
        at += len(line)
    return text


def _without_whose(lines: list[str]) -> list[str]:
    """Leave out the line, or the two, that say whose words follow."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    last = lines[end - 1] if end else ""
    if len(last) > _LINE_MAX or not _SAYS_WHOSE.search(last):
        return lines
    first = lines[end - 2] if end > 1 else ""
    is_broken = not _BEGINS_ONE.search(last) and len(first) <= _LINE_MAX
    return lines[: end - 2 if is_broken and _BEGINS_ONE.search(first) else end - 1]
