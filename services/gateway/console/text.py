"""How values look in a page: what others wrote as text, instants in the reader's zone. Pure.

Whatever a template writes goes through `shown`: characters that a reader wouldn't see, or that turn
a line around, are named instead, and a text that goes on for pages is cut.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
from markupsafe import Markup, escape

from vigil.texts import glyphs
from vigil.words.amounts import number_of
from vigil.words.plain import one_line
from vigil.zones.wall import local

LENGTH_MAX: Final = 20_000
"""Characters of one value."""
SHORT: Final = 280
"""Of one in a list."""
# Controls but tab and line feed; what has no width or turns the direction; lone surrogates, tags.
# Joiners stay: letters and pictures are made with them.
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_STAMP: Final = re.compile(
    r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII
)
_NAMED: Final = glyphs.Spelling(lambda char: f"⟨{ord(char):02X}⟩" if UNSEEN.match(char) else char)


def visible(text: str) -> str:
    r"""Name what can't be seen.

    >>> visible("a\x1b[2J\u202eb\r\n")
    'a⟨1B⟩[2J⟨202E⟩b\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_NAMED)


def clip(text: str, length: int = LENGTH_MAX) -> str:
    """Cut a text, and say so.

    >>> clip("abcdef", 2)
    'ab… (4 characters more)'
    """
    more = len(text) - length
    return text if more <= 0 else f"{text[:length]}… ({more:,} {number_of(more, 'character')} more)"


def shown(value: Any) -> Any:
    """Return what a template writes for a value; what is markup already stays."""
    if type(value) is str and value.isascii() and value.isprintable() and len(value) < LENGTH_MAX:
        return value  # nearly all that is written
    if isinstance(value, Markup):
        return value
    return "" if value is None else visible(clip(str(value)))


def short(value: Any) -> str:
    """Return a text for a list; a long one in one line, cut.

    >>> short(300 * "a")[-25:]
    'aaa… (20 characters more)'
    """
    text = str(value)
    if len(text) <= SHORT:
        return clip(visible(text), SHORT)
    seen = visible(" ".join(text[: 4 * SHORT].split())[:SHORT])
    more = len(text) - SHORT
    return f"{seen[:SHORT]}… ({more:,} {number_of(more, 'character')} more)"


def in_short(value: Any) -> str:
    r"""Return a text in Markdown for a list: its words in one line, a long one cut.

    >>> in_short("**Water** the basil\n\n* today")
    'Water the basil: today'
    """
    text = str(value)
    line = one_line(text[: 4 * SHORT])
    if len(text) <= 4 * SHORT:
        return short(line)
    more = len(text) - SHORT
    return f"{visible(line[:SHORT])}… ({more:,} {number_of(more, 'character')} more)"


def moment(at: datetime | None, zone: ZoneInfo, now: datetime) -> Markup:
    """Return an instant in the reader's zone, with the year if it's another than now; None: a dash.

    >>> now, zone = datetime(2026, 11, 30, tzinfo=UTC), ZoneInfo("Europe/Vienna")
    >>> str(moment(datetime(2030, 1, 1, 18, tzinfo=UTC), zone, now))[-30:]
    '">Tue 01 Jan 2030 19:00</time>'
    >>> str(moment(datetime(9999, 12, 31, 23, tzinfo=UTC), zone, now))[-30:]  # no clock there does
    '">Fri 31 Dec 9999 23:00</time>'
    """
    if at is None:
        return Markup("<span>–</span>")
    here = local(at, zone)
    day = "%a %d %b" if here.year == now.astimezone(zone).year else "%a %d %b %Y"
    exact = at.astimezone(UTC).isoformat(timespec="seconds")
    template = Markup('<time datetime="%s" title="%s">%s</time>')
    return template % (exact, exact, f"{here:{day} %H:%M}")


def written_moment(at: str, zone: ZoneInfo) -> Markup:
    """Return an instant that a record has as text; what is none, as it is written.

    >>> str(written_moment("2026-11-28T19:16:59.5Z", ZoneInfo("Europe/Vienna")))[-29:]
    'Z">Sat 28 Nov 20:16:59</time>'
    >>> str(written_moment("soon", ZoneInfo("UTC")))
    'soon'
    """
    try:
        here = local(datetime.fromisoformat(at), zone)
    except ValueError:
        return escape(visible(clip(at, SHORT)))
    template = Markup('<time datetime="{}" title="{}">{}</time>')
    return template.format(at, at, f"{here:%a %d %b %H:%M:%S}")


def with_moments(text: str, zone: ZoneInfo) -> Markup:
    """Return a text whose instants, as programs write them, are in the reader's zone.

    >>> str(with_moments("<b> for 2026-11-28T23:47:43.7+00:00.", ZoneInfo("Asia/Tokyo")))[-29:]
    '">Sun 29 Nov 08:47:43</time>.'
    """
    pieces: list[Markup] = []
    done = 0
    for found in _STAMP.finditer(text):
        pieces += [escape(shown(text[done : found.start()])), written_moment(found[0], zone)]
        done = found.end()
    return Markup("").join([*pieces, escape(shown(text[done:]))])


def grouped(count: int) -> str:
    """Return a number that is read at a glance.

    >>> grouped(10_000_000), grouped(7)
    ('10,000,000', '7')
    """
    return f"{count:,}"


def usd(micro: int) -> str:
    """Return an amount.

    >>> usd(1_234_567), usd(120)
    ('$1.23', '$0.0001')
    """
    return f"${micro / 1e6:.2f}" if micro >= 10_000 or not micro else f"${micro / 1e6:.4f}"


def as_json(value: Any) -> Markup:
    r"""Return arguments exactly and whole; characters that can't be seen as JSON names them.

    >>> str(as_json({"to": "a\u202eb\u3164"}))
    '{\n  &#34;to&#34;: &#34;a\\u202eb\\u3164&#34;\n}'
    """
    made = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return escape("\n".join(glyphs.visible(line) for line in made.split("\n")))


def start_of_json(value: Any) -> str:
    """Return what a value begins with, as JSON."""
    return msgspec.json.encode(value)[:LENGTH_MAX].decode(errors="replace")


def weight(value: Any) -> int:
    """Return how many characters `as_json` writes for a value, about.

    >>> weight({"a": 1})
    7
    """
    return len(msgspec.json.encode(value))


def bytes_of(text: str) -> int:
    """Return how many bytes a page needs for a text.

    >>> bytes_of("<")
    4
    """
    return len(escape(visible(text)).encode("utf-8", "replace"))


def thread_of(session_key: str) -> str:
    """Return the thread of a session key.

    >>> thread_of("ann:vigil:t1")
    't1'
    """
    return session_key.rpartition(":")[2]


def agent_of(session_key: str) -> str:
    """Return the agent of a session key.

    >>> agent_of("ann:vigil:t1")
    'vigil'
    """
    return session_key.split(":")[1]


def epoch_of(day: str) -> int:
    """Return when a UTC day begins, in seconds since 1970.

    >>> epoch_of("1970-01-02")
    86400
    """
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


def words(name: str) -> str:
    """Return a name of code as words.

    >>> words("pending_approval")
    'pending approval'
    """
    return name.replace("_", " ")
