"""What of a mail's text is somebody's own: quotes and signatures are folded to a remark. Pure.

Only what stands at the end is folded: an answer between quoted lines is about them, so they stay.
Nothing is lost: the mail stays in its mailbox as it came.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final

from ..words.quoted import names_writer_and_day

SIGNATURE_LINES_MAX: Final = 15
"""A longer one is text that happens to stand behind two dashes."""
HEADER_LINES_MIN: Final = 3
BEGUN, ENDED = "\ue0f1quote", "\ue0f1end"
"""Where a quote of a page begins and ends: lines of their own, which no mail has."""
_ATTRIBUTION: Final = re.compile(r"(?=.*(\d|@)).{5,300}:\s*$")
_FIELD: Final = re.compile(r"^\s*\*?[^\W\d_][\w -]{1,20}:\*?\s+\S")
_DIVIDER: Final = re.compile(r"^\s*(_{10,}|-{3,}\s*[^\W\d_][\w ]{3,40}-{3,})\s*$")
_BAR: Final = re.compile(r"^> ?")
_HANDS_ON: Final = re.compile(
    r".{0,40}(forwarded|weitergeleitet|transf[ée]r|r[ée]exp[ée]di|reenviad|inoltrat|doorgestuurd|"
    r"encaminhad|vidarebefordra|videresend|przekazan|转发)",
    re.IGNORECASE,
)
"""A line that says that what follows is another mail, which is handed on."""
_BLOCKQUOTE: Final = re.compile(r"<(/?)blockquote\b[^>]{0,2000}>", re.IGNORECASE)
_MARK: Final = re.compile("\ue0f1")


def marked(html: str) -> str:
    """Return a page whose quotes are told in its text, too.

    >>> marked("a<blockquote>b</blockquote>").count("<p>")
    2
    """
    said = {"": f"<p>{BEGUN}</p>", "/": f"<p>{ENDED}</p>"}
    return _BLOCKQUOTE.sub(lambda found: said[found[1]] + found[0], _MARK.sub("", html))


def with_bars(text: str) -> str:
    """Return a text made of a marked page, with ``>`` before its quotes."""
    lines: list[str] = []
    depth = 0
    for line in text.splitlines():
        bare = line.strip()
        if bare == BEGUN:
            depth += 1
        elif bare == ENDED:
            depth = max(depth - 1, 0)
        else:
            lines.append("> " + line if depth and bare else line)
    return _MARK.sub("", "\n".join(lines))


def handed_on(text: str, *, is_named_so: bool) -> tuple[str, str]:
    """Part a mail that hands on another one in its text -> what stands above that, and the other;
    empty: it hands on none, or quotes what it answers.

    Args:
        is_named_so: whether its subject says that it does.

    >>> other = "-- Forwarded message --\\nFrom: E <e@a.org>\\nDate: 3 May\\nTo: me\\n\\nHi"
    >>> handed_on(f"See.\\n{other}", is_named_so=False) == ("See.", other)
    True
    >>> handed_on("See.\\n\\nOn 3 May Ann wrote:\\n> Hi", is_named_so=False)[1]
    ''
    """
    lines = text.rstrip().split("\n")
    bare = [_BAR.sub("", one) for one in lines]
    at = _start_of_forward(bare)
    if at is not None:
        above = at - 1
        while above > 0 and not bare[above].strip():
            above -= 1
        at = above if above >= 0 and _HANDS_ON.match(bare[above]) else at
        # What is quoted may hand something on itself, in an answer to it.
        says_so = _HANDS_ON.match(lines[at]) is not None and not lines[at].startswith(">")
        if is_named_so or says_so:
            return "\n".join(lines[:at]), "\n".join(bare[at:]).strip()
    elif is_named_so:
        kept, remark = _without_quote(lines)
        if remark:
            return "\n".join(kept), "\n".join(bare[len(kept) :]).strip()
    return text, ""


def folded(text: str) -> str:
    """Return a text with what isn't its writer's own, at its end, as a remark.

    >>> folded("Yes.\\n\\nOn 3 May 2026 Ann <ann@a.example> wrote:\\n> Shall we?\\n> Ann")
    'Yes.\\n\\n[2 quoted lines]'
    >>> folded("Yes.\\n-- \\nAnn\\n+44 1")
    'Yes.\\n\\n[a signature]'
    """
    lines = text.rstrip().split("\n")
    remarks: list[str] = []
    while True:
        shorter, remark = _without_quote(lines)
        if not remark:
            shorter, remark = _without_signature(lines)
        if not remark:
            break
        lines = shorter
        remarks.insert(0, remark)
    own = "\n".join(lines)
    return "\n\n".join([*([own] if own.strip() else []), *remarks])


def _without_quote(lines: list[str]) -> tuple[list[str], str]:
    """Cut off the quote at the end, with what says whose it is."""
    if (at := _start_of_forward(lines)) is not None:
        return _trimmed(lines[:at]), _counted(len(lines) - at)
    kept = _trimmed(lines)
    quoted = len(list(takewhile(lambda one: one.startswith(">") or not one.strip(), kept[::-1])))
    count = sum(one.startswith(">") for one in kept[len(kept) - quoted :])
    if not count:
        return lines, ""
    return _without_attribution(_trimmed(kept[: len(kept) - quoted])), _counted(count)


def _without_attribution(lines: list[str]) -> list[str]:
    """Cut off the line or two that say who wrote what is quoted."""
    for size in (1, 2):
        is_broken = size == 1 and lines and lines[-1].lstrip().startswith("<")
        if not is_broken and _ATTRIBUTION.match(" ".join(lines[-size:])) and lines[-size].strip():
            return _trimmed(lines[:-size])
    return lines


def _start_of_forward(lines: list[str]) -> int | None:
    """Return where the head of an older mail stands in the text, as some programs write it."""
    run = 0
    for at, line in enumerate(lines):
        run = run + 1 if _FIELD.match(line) else 0
        if run == HEADER_LINES_MIN:
            start = at - run + 1
            block = lines[start : at + 4]
            before = start - 1
            while before > 0 and not lines[before].strip():
                before -= 1
            if before >= 0 and _DIVIDER.match(lines[before]):
                return before
            if any("@" in one for one in block) or names_writer_and_day(block):
                return start
    return None


def _without_signature(lines: list[str]) -> tuple[list[str], str]:
    for at in range(len(lines) - 1, max(len(lines) - SIGNATURE_LINES_MAX - 2, -1), -1):
        if at and lines[at].rstrip("\r") in ("-- ", "--"):
            return _trimmed(lines[:at]), "[a signature]"
    return lines, ""


def _counted(count: int) -> str:
    return f"[{count} quoted line{'s' * (count != 1)}]"


def _trimmed(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]
