"""HTML to text that a model can read, as a program: HTML on standard input, text on output.

A page is written by a stranger, and some parsers take minutes for what was made to hold them up. So
it runs as a process of its own that has little time and memory, and nothing but the standard
library: it starts in some milliseconds (``python -I -S readable.py``).

Kept are headings, paragraphs, lists, preformatted text and where links lead. Left out is what a
browser would not show either: scripts, styles, templates, what is hidden.
"""

from __future__ import annotations

import re
import resource
import sys
from html.parser import HTMLParser
from typing import Final

CPU_S: Final = 5
MEMORY_BYTES: Final = 512 * 1024 * 1024
SILENT: Final = frozenset(
    ("script", "style", "template", "svg", "math", "iframe", "object", "noscript", "select",
     "textarea", "canvas", "audio", "video")
)  # fmt: skip
BLOCKS: Final = frozenset(
    ("address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "fieldset",
     "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr",
     "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tr", "ul", "title")
)  # fmt: skip
VOID: Final = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
     "wbr")
)  # fmt: skip
SHOWN_LINKS: Final = ("http://", "https://", "/", "./", "../", "?")
HIDDEN_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
DEPTH_MAX: Final = 10_000

Attributes = list[tuple[str, str | None]]


class PageReader(HTMLParser):
    """Collects what a reader would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._hidden: list[str] = []
        """Tags that are open since, and with, one that is not shown."""
        self._links: list[str] = []
        self._is_pre = 0

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if self._hidden or tag in SILENT or _is_hidden(attrs):
            if tag not in VOID and len(self._hidden) < DEPTH_MAX:
                self._hidden.append(tag)
            return
        self._begin(tag)
        if tag == "a":
            self._links.append(next((v or "" for n, v in attrs if n == "href"), ""))
        elif tag == "img" and (alt := next((v for n, v in attrs if n == "alt"), "")):
            self._parts.append(f"[{alt}]")

    def _begin(self, tag: str) -> None:
        if tag in BLOCKS or tag == "br":
            self._parts.append("\n" if tag in ("br", "li", "tr", "dt", "dd") else "\n\n")
        if re.fullmatch("h[1-6]", tag):
            self._parts.append("#" * int(tag[1]) + " ")
        elif tag == "li":
            self._parts.append("- ")
        elif tag in ("td", "th"):
            self._parts.append("| " if self._parts and self._parts[-1] == "\n" else " | ")
        elif tag == "pre":
            self._is_pre += 1

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag in self._hidden:
                while self._hidden.pop() != tag:
                    pass
            return
        if tag == "a" and self._links:
            target = self._links.pop()
            if target.startswith(SHOWN_LINKS):
                self._parts.append(f" ({target})")
        elif tag == "pre":
            self._is_pre = max(0, self._is_pre - 1)
        if tag in BLOCKS:
            self._parts.append("\n" if tag in ("li", "tr", "dt", "dd") else "\n\n")

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if not self._is_pre:
            data = re.sub(r"\s+", " ", data)
            if not self._parts or self._parts[-1].endswith(("\n", " ")):
                data = data.lstrip()
        if data:
            self._parts.append(data)

    def text(self) -> str:
        """Return what was seen."""
        lines = (line.rstrip() for line in "".join(self._parts).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _is_hidden(attrs: Attributes) -> bool:
    return any(
        name == "hidden"
        or (name == "aria-hidden" and value == "true")
        or (name == "style" and HIDDEN_STYLE.search(value or "") is not None)
        for name, value in attrs
    )


def readable(html: str) -> str:
    """Return the text of a page.

    >>> readable("<h1>Hi</h1><p>See <a href='/x'>this</a>.<script>no</script>")
    '# Hi\\n\\nSee this (/x).'
    """
    reader = PageReader()
    reader.feed(html)
    reader.close()
    return reader.text()


def main() -> None:
    """Read, convert, write."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    html = sys.stdin.buffer.read().decode("utf-8", "replace")
    sys.stdout.buffer.write(readable(html).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
