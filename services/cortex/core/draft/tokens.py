"""The estimate of what a text takes of a model's context window. Pure."""

from __future__ import annotations

from typing import Final

BYTES_PER_TOKEN: Final = 3
"""English has about four bytes to a token, other scripts up to one token for each character of
three bytes: a third of the bytes is more than what most texts take."""


def tokens_of_bytes(size: int) -> int:
    """Return the estimate for a text of so many bytes.

    >>> tokens_of_bytes(0), tokens_of_bytes(4)
    (0, 2)
    """
    return -(-size // BYTES_PER_TOKEN)


def tokens_of_text(text: str) -> int:
    return tokens_of_bytes(len(text.encode("utf-8", "surrogatepass")))
