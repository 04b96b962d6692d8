"""HTML to text that a model can read, as a program: it reads the URL of a page, a line feed and the
HTML, and writes text.

A page is written by a stranger, and some parsers take minutes for what was made to hold them up. So
it runs as a process of its own that has little time and memory, and nothing but the standard
library: it starts in some milliseconds (``python -I -S readable.py [--xml]``).

First come its title and the day on which it says it was published. Kept are headings, paragraphs,
lists, tables, preformatted text, and where links and frames lead; of a page that says which part is
the main one, that part. Left out is what a browser would not show either: scripts, styles,
comments, templates, what an attribute hides, characters without a shape. What a stylesheet hides
isn't known here.
"""

from __future__ import annotations

import re
import resource
import sys
from collections import Counter
from datetime import date
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

CPU_S: Final = 5
MEMORY_BYTES: Final = 512 * 1024 * 1024
SILENT: Final = frozenset(
    ("script", "style", "template", "svg", "math", "iframe", "object", "noscript", "noframes",
     "noembed", "select", "datalist", "textarea", "canvas", "audio", "video", "title")
)  # fmt: skip
BLOCKS: Final = frozenset(
    ("address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt",
     "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
     "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tr",
     "ul")
)  # fmt: skip
VOID: Final = frozenset(
    ("area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta",
     "source", "track", "wbr")
)  # fmt: skip
ENDED_BY: Final = {
    "p": BLOCKS,
    "li": ("li",),
    "dd": ("dd", "dt"),
    "dt": ("dd", "dt"),
    "tr": ("tr",),
    "td": ("td", "th", "tr"),
    "th": ("td", "th", "tr"),
}
"""What needs no end, and whose beginning ends it."""
BARRIERS: Final = frozenset(("caption", "math", "object", "svg", "table", "td", "template", "th"))
"""What doesn't end with an element around it."""
HIDDEN_STYLE: Final = re.compile(
    r"(^|;)(display:none|(content-)?visibility:(hidden|collapse)|"
    r"(opacity|font-size):(0+(\.0*)?|\.0+)(?![\d.])|(left|top|text-indent|margin-left):-\d{4})"
)
UNSHAPED: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
"""Characters that nobody sees, or that turn the order of others around."""
DEPTH_MAX: Final = 10_000
LINKS_MAX: Final = 300
LINK_LENGTH_MAX: Final = 500
LINKS_LENGTH_MAX: Final = 24_000
"""Characters of all addresses together."""
TITLE_LENGTH_MAX: Final = 300
DATA_LENGTH_MAX: Final = 100_000
"""Characters of JSON-LD that are looked through for a date."""
MAIN_LENGTH_MIN: Final = 200
"""Characters; what calls itself the main part and has fewer, isn't."""
TITLES: Final = ("title", "og:title", "twitter:title", "dc.title")
DATES: Final = (
    "article:published_time",
    "og:published_time",
    "datepublished",
    "json-ld",
    "date",
    "dc.date",
    "dc.date.issued",
    "dcterms.created",
    "dcterms.issued",
    "citation_publication_date",
    "parsely-pub-date",
    "publish-date",
    "pubdate",
    "time",
)
"""Under which names a page says when it was published, the best first."""
_UNENDED_TAG: Final = re.compile("<[a-zA-Z/!?]")
"""A browser shows nothing of a tag or comment that has no end; the parser would."""
_PUBLISHED: Final = re.compile(r'"datePublished"\s*:\s*"([^"]{4,40})"')
_DAY: Final = re.compile(r"\s*(\d{4})([-/.]?)(\d\d)\2(\d\d)(?!\d)")
_ESCAPE: Final = re.compile(r"\\([0-9a-fA-F]{1,5})\s?")

Attributes = list[tuple[str, str | None]]


class Links:
    """Where links lead, as long as there is room."""

    def __init__(self, url: str) -> None:
        self._base = url
        self._room = LINKS_LENGTH_MAX
        self._shown = 0
        self.left_out = 0

    def start_from(self, href: str) -> None:
        """Take what a page names as the address that its links start from."""
        self._base = _joined(self._base, href) or self._base

    def shown(self, href: str) -> str:
        """Return an address with all its parts; empty: it leads nowhere, or there's no room."""
        if not href.strip() or href.lstrip().startswith("#"):
            return ""
        if self._shown >= LINKS_MAX or self._room <= 0 or len(href) > LINK_LENGTH_MAX:
            self.left_out += 1
            return ""
        url = _joined(self._base, href)
        self._shown += bool(url)
        self._room -= len(url)
        return url


class PageReader(HTMLParser):
    """Collects what a reader would see.

    Args:
        url: of the page.
        is_xml: whether it's XHTML.
    """

    def __init__(self, url: str, *, is_xml: bool) -> None:
        super().__init__(convert_charrefs=True)
        self._is_xml = is_xml
        self._links = Links(url)
        self._said: dict[str, str] = {}
        """What the page says about itself, by name."""
        self._parts: list[str] = []
        self._main: list[str] = []
        """Those of the main part."""
        self._open: Counter[str] = Counter()
        self._hidden: list[str] = []
        """Tags that are open since, and with, one that is not shown."""
        self._targets: list[str] = []
        """Of the links that are open."""
        self._heard = ""
        """Under which name text is noted that is not shown."""

    def updatepos(self, i: int, j: int) -> int:
        """Don't count lines: that takes a tenth of the time, and nobody asks."""
        return j

    # ------------------------------------------------------------ tags

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        given = {name: value or "" for name, value in reversed(attrs)}
        if len(self._hidden) == 1 and tag in ENDED_BY.get(self._hidden[0], ()):
            self._hidden.pop()
        is_closed = tag == "dialog" and "open" not in given
        if self._hidden or tag in SILENT or is_closed or _is_hidden(given):
            self._pass_over(tag, given)
        else:
            self._show(tag, given)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        """In HTML a slash ends nothing: what follows is in the element, and may be hidden."""
        if self._is_xml:
            super().handle_startendtag(tag, attrs)
        else:
            self.handle_starttag(tag, attrs)

    def _pass_over(self, tag: str, given: dict[str, str]) -> None:
        is_first = not self._hidden
        if tag not in VOID and len(self._hidden) < DEPTH_MAX:
            self._hidden.append(tag)
        if not is_first:
            return
        if tag == "title":
            self._heard = "title"
        elif tag == "script" and "ld+json" in given.get("type", "").lower():
            self._heard = "json-ld"
        elif tag == "iframe" and not _is_hidden(given):
            self._show_frame(given)

    def _show(self, tag: str, given: dict[str, str]) -> None:
        if tag not in VOID:
            self._open[tag] += 1
        self._add(_begun(tag, self._parts[-1:] == ["\n"]))
        match tag:
            case "a":
                self._targets.append(given.get("href", ""))
            case "base":
                self._links.start_from(given.get("href", ""))
            case "frame":
                self._show_frame(given)
            case "img" if alt := _line(given.get("alt", "")):
                self._add(f"[{alt}]")
            case "meta" | "time":
                self._note(tag, given)

    def _show_frame(self, given: dict[str, str]) -> None:
        if url := self._links.shown(given.get("src", "")):
            self._add(f"\n[frame: {url}]\n")

    def _note(self, tag: str, given: dict[str, str]) -> None:
        name = given.get("property") or given.get("name") or given.get("itemprop") or tag
        value = given.get("content") or given.get("datetime") or ""
        if value:
            self._said.setdefault(name.lower(), value[:TITLE_LENGTH_MAX])

    def handle_endtag(self, tag: str) -> None:
        self._heard = ""
        if self._hidden:
            if tag in self._hidden:
                while self._hidden.pop() != tag:
                    pass
                return
            if tag not in BLOCKS or not self._open[tag] or BARRIERS.intersection(self._hidden):
                return
            self._hidden.clear()
        if tag == "a" and self._targets and (url := self._links.shown(self._targets.pop())):
            self._add(f" ({url})")
        if tag in BLOCKS:
            self._add("\n" if tag in ("li", "tr", "dt", "dd") else "\n\n")
        self._open[tag] = max(0, self._open[tag] - 1)

    # ------------------------------------------------------------ text

    def handle_data(self, data: str) -> None:
        if self._heard:
            length_max = DATA_LENGTH_MAX if self._heard == "json-ld" else TITLE_LENGTH_MAX
            before = self._said.get(self._heard, "")
            self._said[self._heard] = (before + data)[:length_max]
        if self._hidden:
            return
        data = UNSHAPED.sub("", data)
        if not self._open["pre"]:
            data = re.sub(r"\s+", " ", data)
            if not self._parts or self._parts[-1].endswith(("\n", " ")):
                data = data.lstrip()
        self._add(data)

    def _add(self, text: str) -> None:
        if text:
            self._parts.append(text)
            if self._open["main"] or self._open["article"]:
                self._main.append(text)

    def text(self) -> str:
        """Return what was seen."""
        main = _tidied(self._main)
        parts = [self._head(), main if len(main) >= MAIN_LENGTH_MIN else _tidied(self._parts)]
        if self._links.left_out:
            more = self._links.left_out
            leads = "link leads" if more == 1 else "links lead"
            parts.append(f"[where {more} more {leads} is left out]")
        return "\n\n".join(filter(None, parts))

    def _head(self) -> str:
        said = self._said
        title = next((line for name in TITLES if (line := _line(said.get(name, "")))), "")
        found = _PUBLISHED.search(said.get("json-ld", ""))
        said["json-ld"] = "" if found is None else found[1]
        day = next((day for name in DATES if (day := _day(said.get(name, "")))), "")
        lines = [title and f"Title: {title}", day and f"Published: {day}"]
        return "\n".join(filter(None, lines))


# ---------------------------------------------------------------- what is hidden


def _is_hidden(given: dict[str, str]) -> bool:
    """
    >>> _is_hidden({"style": r"color: red; DISPLAY: /**/ n\\6fne !important"})
    True
    >>> _is_hidden({"style": "opacity: 0.5; font-size: 10px"})
    False
    """
    if (
        "hidden" in given
        or "popover" in given
        or given.get("aria-hidden", "").strip().lower() == "true"
    ):
        return True
    if not given.get("style"):
        return False
    style = re.sub(r"/\*.*?\*/", "", given["style"], flags=re.DOTALL)
    style = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), style)
    return HIDDEN_STYLE.search("".join(style.lower().split()) + ";") is not None


# ---------------------------------------------------------------- parts of the text


def _begun(tag: str, is_line_begun: bool) -> str:
    if re.fullmatch("h[1-6]", tag):
        return "\n\n" + "#" * int(tag[1]) + " "
    match tag:
        case "br" | "tr" | "dt" | "dd":
            return "\n"
        case "li":
            return "\n- "
        case "td" | "th":
            return "| " if is_line_begun else " | "
    return "\n\n" if tag in BLOCKS else ""


def _tidied(parts: list[str]) -> str:
    lines = (line.rstrip() for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _line(text: str) -> str:
    return " ".join(UNSHAPED.sub("", text).split())[:TITLE_LENGTH_MAX]


def _day(text: str) -> str:
    """Return the day that an instant lies on; empty: it's not told in numbers, the year first.

    >>> _day("2026-11-01T23:00:00+01:00"), _day("20261101"), _day("2026/13/01"), _day("1 May")
    ('2026-11-01', '2026-11-01', '', '')
    """
    found = _DAY.match(text)
    try:
        return "" if found is None else date(*(int(found[n]) for n in (1, 3, 4))).isoformat()
    except ValueError:
        return ""


def _joined(base: str, href: str) -> str:
    """Return the address of a link; empty: it's none of the web's.

    >>> _joined("https://a.example/x/y", "../z?q=1"), _joined("https://a.example/", "mailto:a@b")
    ('https://a.example/z?q=1', '')
    """
    try:
        url = urljoin(base, "".join(UNSHAPED.sub("", href).split()))
    except ValueError:
        return ""
    is_web = url.startswith(("http://", "https://"))
    return url if is_web and len(url) <= LINK_LENGTH_MAX else ""


def readable(html: str, url: str, *, is_xml: bool = False) -> str:
    """Return the text of a page.

    >>> print(readable("<h1>Hi</h1><p>See <a href='/x'>this</a>.<script>no</script>",
    ...                "https://a.example/b"))
    # Hi
    <BLANKLINE>
    See this (https://a.example/x).
    """
    reader = PageReader(url, is_xml=is_xml)
    reader.feed(html)
    if _UNENDED_TAG.match(reader.rawdata):
        reader.rawdata = ""
    reader.close()
    return reader.text()


def main() -> None:
    """Read, convert, write."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    url, _, html = sys.stdin.buffer.read().decode("utf-8", "replace").partition("\n")
    sys.stdout.buffer.write(
        readable(html, url, is_xml="--xml" in sys.argv).encode("utf-8", "replace")
    )


if __name__ == "__main__":
    main()
