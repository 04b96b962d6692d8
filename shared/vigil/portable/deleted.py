"""What a person forgot since an export was made, and what of the export goes with it. Pure.

It isn't brought back by the way: a memory is left out with what says the same, what it had
corrected, and summaries and observations that have its words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any


def forgotten_in(records: Iterable[Any]) -> set[str]:
    """Return the memories that records of MEMORIES, as JSON, forget because somebody asked.

    >>> sorted(forgotten_in([{"op": "forget", "memory_ids": ["a"]}, {"op": "undo"}, None,
    ...     {"op": "forget", "memory_ids": ["b"], "reason": "decayed"}]))
    ['a']
    """
    found: set[str] = set()
    for one in records:
        op = one.get("op") if isinstance(one, dict) else None
        if op == "undo" or (op == "forget" and one.get("reason", "asked") == "asked"):
            found |= _texts(one.get("memory_ids"))
    return found


def gone_with(forgotten: Collection[str], records: Collection[Any]) -> set[str]:
    """Return the memories of an export that aren't said any more once these are forgotten, and
    these.

    >>> sorted(gone_with({"b"}, [
    ...     {"op": "save", "memory": {"id": "a", "content": "It is blue"}},
    ...     {"op": "save", "memory": {"id": "b", "content": "It is green"}},
    ...     {"op": "replace", "by_id": "b", "memory_ids": ["a"]},
    ...     {"op": "save", "memory": {"id": "c", "content": "It is green"}},
    ...     {"op": "merge", "memory": {"id": "d", "content": "Green, tall"}, "merged_ids": ["b"]},
    ...     {"op": "save", "memory": {"id": "e", "content": "It is tall"}}]))
    ['a', 'b', 'c', 'd']
    """
    gone, before = set(forgotten), -1
    if not gone:
        return gone
    while len(gone) > before:
        before = len(gone)
        words = {text for id_, text in map(_said, records) if id_ in gone and text}
        for one in records:
            id_, text = _said(one)
            if text in words or (id_ and _made_of(one) & gone):
                gone.add(id_)
            if isinstance(one, dict) and one.get("op") == "replace" and one.get("by_id") in gone:
                gone |= _texts(one.get("memory_ids"))
            if id_ in forgotten:  # of a summary that was asked for, what it contains
                gone |= _texts(one.get("merged_ids"))
    return gone


def id_of(record: Any) -> str:
    """Return the memory that a record begins; empty: none."""
    return _said(record)[0]


def _said(record: Any) -> tuple[str, str]:
    """Return the id and the words of the memory that a record begins."""
    memory = record.get("memory") if isinstance(record, dict) else None
    if not isinstance(memory, dict):
        return "", ""
    id_, text = memory.get("id"), memory.get("content")
    return (id_ if isinstance(id_, str) else ""), (text if isinstance(text, str) else "")


def _made_of(record: Any) -> set[str]:
    """Return the memories whose words one has that a record begins."""
    return _texts(record.get("merged_ids")) | _texts(record["memory"].get("provenance"))


def _texts(found: Any) -> set[str]:
    return {one for one in found if isinstance(one, str)} if isinstance(found, list) else set()
