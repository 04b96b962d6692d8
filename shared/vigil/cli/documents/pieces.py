"""A text as pieces that are memories each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LENGTH: Final = 1_200
"""Characters of a piece: some paragraphs, few enough that a search finds what one says."""
_HEADING: Final = re.compile(r"#{1,6}\s+\S")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n")


def pieces(text: str, title: str) -> list[str]:
    r"""Return a text in pieces, each under the title and the headings that it stands below.

    >>> pieces("# Boiler\n\nIt is old.\n\n## Service\n\nEach May.", "house.md")
    ['house.md › Boiler\nIt is old.', 'house.md › Boiler › Service\nEach May.']
    """
    found: list[str] = []
    head, body = "", ""
    for above, paragraph in _paragraphs(text, title):
        for part in _parts(paragraph):
            if body and (above != head or len(body) + len(part) > LENGTH):
                found.append(f"{head}\n{body}")
                body = ""
            head = above
            body = f"{body}\n\n{part}" if body else part
    return [*found, f"{head}\n{body}"] if body else found


def _paragraphs(text: str, title: str) -> Iterator[tuple[str, str]]:
    """Yield each paragraph with the headings above it, as Markdown writes them."""
    trail: list[tuple[int, str]] = []
    for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n")):
        lines = block.strip().split("\n")
        while lines and _HEADING.match(lines[0]):
            marks, _, name = lines.pop(0).partition(" ")
            trail = [one for one in trail if one[0] < len(marks)]
            trail.append((len(marks), name.strip()))
        if paragraph := "\n".join(lines).strip():
            yield " › ".join((title, *(name for _, name in trail)))[:LENGTH], paragraph


def _parts(paragraph: str) -> Iterator[str]:
    """Yield a paragraph; one that is too long at the ends of sentences, or in the middle of one."""
    part = ""
    for sentence in _SENTENCE.split(paragraph) if len(paragraph) > LENGTH else [paragraph]:
        if part and len(part) + len(sentence) > LENGTH:
            yield part
            part = ""
        part = f"{part} {sentence}" if part else sentence
        while len(part) > LENGTH:
            yield part[:LENGTH]
            part = part[LENGTH:]
    if part:
        yield part
