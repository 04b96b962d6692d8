"""What full text can be narrowed to: tokens beside the words of a memory. Pure.

They have a column of their own. So a filter is part of the MATCH expression, and a rare source
gives its results however many better matches other sources have (SPEC M-3). A token ends in a
digit, which the stemmer leaves alone, and is a hash where somebody chose the text.

    {terms} : (flat OR berlin) AND {facets} : s5f70bf18a086007016e948b04aed3b820
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import Memory, MemoryType
from vigil.subjects import token_of

TRUSTED: Final = "trusted1"
"""Of what doesn't descend from untrusted content."""


def of_source(source: str) -> str:
    return f"s{token_of(source)}0"


def of_type(kind: MemoryType) -> str:
    return f"type{kind}0"


def of_thread(thread: str) -> str:
    return f"t{token_of(thread)}0"


def of_memory(memory: Memory) -> str:
    return of(memory.source, memory.type, memory.thread, is_tainted=memory.is_tainted)


def of(source: str, kind: MemoryType, thread: str, *, is_tainted: bool) -> str:
    """Return all facets of a memory, as they stand in the full text."""
    found = [of_source(source), of_type(kind)]
    if thread:
        found.append(of_thread(thread))
    if not is_tainted:
        found.append(TRUSTED)
    return " ".join(found)
