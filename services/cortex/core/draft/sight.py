"""What a model sees of the files in a conversation, and what that takes. Pure.

Whether it is shown a file at all is decided once, when that comes into the history: the rows say
so from then on, whatever is configured later. Another model that is asked (the fallback, that of a
worker) may take less, and a request holds only so many: the others are named by words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from vigil.attachments.examine import PDF, TEXT
from vigil.contracts import Attachment, AttachmentBlock, Block, Row, TextBlock
from vigil.settings.models import Medium

from .tokens import tokens_of_bytes

TOKENS_SHARE_MAX: Final = 0.5
"""The share of the context window that the files of one message may take."""
PIXELS_PER_TOKEN: Final = 400
"""The Messages API takes a token for 750 pixels (its documentation on vision), Chat Completions one
for 416 at most, of the models that count in patches (OpenAI's guide on images)."""
IMAGE_TOKENS_MIN: Final = 300
"""Chat Completions: 255 for the smallest image of the models that count in tiles."""
IMAGE_TOKENS_MAX: Final = 4_800
"""Larger images are made smaller first: to 4,784 tokens at most by the Messages API."""
PAGE_TOKENS: Final = 3_000 + 1_600
"""The most tokens of a page of a PDF file. The Messages API takes 1,500 to 3,000 for a page's text,
and an image of it."""
PAGE_BYTES: Final = 10_000
"""Bytes of a PDF file that stand for a page where nobody could count them: what a page of text
takes at least."""
TEXT_AROUND_BYTES: Final = 640
"""What stands around a text: its name, of 120 characters at most, its size, and where it ends."""
FILES_MAX: Final = 20
"""The most files of a request. With more, the Messages API takes no image of over 2,000 pixels on a
side."""
PAGES_MAX: Final = 100
"""The most pages of a request to the Messages API, for models with 200,000 tokens of context."""
BYTES_MAX: Final = 20_000_000
"""The most bytes of a request, whose limit is 32 MB with the Messages API: in Base64 they take a
third more."""
UNTAKEN: Final = "you can't read it"
TOO_LONG: Final = "it's too long for you to read"
CROWDED: Final = "it's not shown any more, since others came after it"
GONE: Final = "it was removed"
REFUSED: Final = "it can't be read"


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What a model takes."""

    takes: frozenset[Medium] = frozenset()
    tokens_max: int = 0
    """The most tokens that the files of one message may take."""

    def obstacle(self, file: Attachment) -> str:
        """Return why a file isn't shown; empty: it is.

        >>> Sight(takes=frozenset(["image"])).obstacle(
        ...     Attachment(hash="0f", name="plan.pdf", type="application/pdf", size=1))
        "you can't read it"
        """
        medium = medium_of(file)
        if medium is not None and medium not in self.takes:
            return UNTAKEN
        return TOO_LONG if tokens_of(file) > self.tokens_max else ""


def medium_of(file: Attachment) -> Medium | None:
    """Return what a model has to take to be shown a file; None: it's text, which all read."""
    if file.type == TEXT:
        return None
    return "pdf" if file.type == PDF else "image"


def pages_of(file: Attachment) -> int:
    """Return how many pages a file has, or might have; an image has none."""
    if file.type != PDF:
        return 0
    return file.pages or min(PAGES_MAX, -(-file.size // PAGE_BYTES))


def tokens_of(file: Attachment) -> int:
    """Return the estimate for a file that is shown: more than what most models take.

    >>> tokens_of(Attachment(hash="0f", name="a", type="image/png", size=9, width=800, height=600))
    1200
    >>> tokens_of(Attachment(hash="0f", name="a", type="text/plain", size=9, shown_bytes=2_360))
    1000
    """
    if file.type == TEXT:
        return tokens_of_bytes(file.shown_bytes + TEXT_AROUND_BYTES)
    if file.type == PDF:
        return pages_of(file) * PAGE_TOKENS
    tokens = -(-file.width * file.height // PIXELS_PER_TOKEN)
    return min(max(tokens, IMAGE_TOKENS_MIN), IMAGE_TOKENS_MAX)


def named(file: Attachment, why: str = "") -> str:
    """Name a file to a model, and say why it isn't shown any more, if it isn't."""
    return f"[attached: {file.in_words}; {why}]" if why else f"[attached: {file.in_words}]"


def unseen(file: Attachment, why: str) -> str:
    """Tell a model of a file that it was never shown, which so sways nobody: not by its name, which
    whoever made it may have given it."""
    return f"[attached: {file.unnamed}; {why}]"


def blocks_of(text: str, files: Iterable[Attachment], sight: Sight) -> tuple[Block, ...]:
    """Return what the history has of a message: its text, and what is attached to it.

    >>> blocks_of("Hello", (), Sight())
    (TextBlock(text='Hello'),)
    """
    lines, shown = parted(files, sight)
    blocks = (AttachmentBlock(file=file) for file in shown)
    return (TextBlock(text="\n".join((text, *lines))), *blocks)


def parted(files: Iterable[Attachment], sight: Sight) -> tuple[list[str], list[Attachment]]:
    """Part files that come together -> words for those that aren't shown, and the others."""
    lines, shown, left = [], [], sight.tokens_max
    for file in files:
        if why := sight.obstacle(file):
            lines.append(unseen(file, why))
        elif tokens_of(file) > left:
            lines.append(unseen(file, TOO_LONG))
        else:
            left -= tokens_of(file)
            shown.append(file)
    return lines, shown


# ---------------------------------------------------------------- one request


def media_tokens(files: Iterable[Attachment]) -> int:
    """Return the estimate for all files that a request shows."""
    return sum(map(tokens_of, files))


def files_of(rows: Iterable[Row]) -> list[Attachment]:
    """Return the files that rows show, the oldest first."""
    return [
        block.file for row in rows for block in row.blocks if isinstance(block, AttachmentBlock)
    ]


def crowded_out(files: Sequence[Attachment]) -> int:
    """Return how many of the oldest files a request has no room for.

    Once they are too many, all but the newest half go at once: of a list that slides no provider's
    cache would hold any.
    """
    start = 0
    for end in range(1, len(files) + 1):
        if _has_room(files[start:end]):
            continue
        while start < end - 1 and not _has_room(files[start:end], share=0.5):
            start += 1
    return start


def _has_room(files: Sequence[Attachment], share: float = 1.0) -> bool:
    return (
        len(files) <= FILES_MAX * share
        and sum(map(pages_of, files)) <= PAGES_MAX * share
        and sum(file.size for file in files) <= BYTES_MAX * share
    )
