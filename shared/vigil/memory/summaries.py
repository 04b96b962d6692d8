"""What tells a summary that maintenance made from others: its id (SPEC M-6). Pure.

Maintenance puts notes one below the other; the text of that is written anew later. Both ids follow
from what they are made of, so neither is ever made twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..contracts import Memory
from ..subjects import token_of


def merged_id(ids: Iterable[str]) -> str:
    """Return the id of the summary that takes the place of these memories, in whichever order."""
    return token_of("merge", *sorted(ids))


def rewritten_id(summary: str) -> str:
    """Return the id of the memory that has a summary's text written anew."""
    return token_of("rewrite", summary)


def is_unwritten(memory: Memory) -> bool:
    """Whether it is a summary as maintenance made it: notes, one below the other."""
    return memory.type == "summary" and memory.id == merged_id(memory.provenance)
