"""What memories look like on a terminal: hits with their scores, lists, one of them, a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from vigil.words.amounts import count_of

from .. import options, output, prefixes, tables, wall
from ..documents.intake import ForgottenFile, TakenIn
from ..documents.sources import FILES
from ..tables import Column

NODE_LENGTH_MAX: Final = 50
PARTS: Final = (
    "text",
    "vector",
    "words",
    "gist",
    "neighbours",
    "thread",
    "graph",
    "names",
    "alike",
    "speaker",
    "date",
    "question",
    "brief",
    "repeat",
    "recency",
    "importance",
    "taint",
)


def show_saved(saved: Mapping[str, Any]) -> None:
    output.data(saved["id"])
    output.message("It was saved before." if saved.get("is_repeat") else "Saved.")


def show_taken_in(taken: Sequence[TakenIn], forgotten: Sequence[ForgottenFile]) -> None:
    for gone in forgotten:
        told = f"removed, {count(gone.undone)} forgotten"
        output.data(output.printable(f"{gone.source.removeprefix(FILES)}: {told}"))
    for one in taken:
        told = f"{one.outcome}, {count(one.saved)} saved"
        if one.why:
            told = one.why if one.outcome == "left out" else f"{told}; {one.why}"
        output.data(output.printable(f"{one.file}: {told}"))
    if not (taken or forgotten):
        output.message("No file of a kind that is read is there: text, Markdown, HTML, PDF.")


def show_forgotten(ids: Sequence[str]) -> None:
    if ids:
        output.message(f"Forgot {count(len(ids))}.")


def undone(found: Mapping[str, Any]) -> str:
    """Say how many memories stand no more, and how many stand again."""
    ended, again = (
        len(found[name]) + found.get(f"{name}_left_out", 0) for name in ("undone", "restored")
    )
    restored = f"; {count(again)} stand again" if again else ""
    return f"Reverted {count(ended)}{restored}."


def show_found(found: Mapping[str, Any]) -> None:
    """Show what a search found, and what it could not ask."""
    if "vectors" in found["degraded"]:
        output.message("The vectors can't be asked now: this is what the text alone finds.")
    if "newest" in found["degraded"]:
        output.message("What was saved last can't be found yet: `vigil status` says why.")
    if found["memories"]:
        show_hits(found["memories"])
    elif found.get("is_empty"):
        output.message('Nothing is remembered yet: `vigil memory save "…"`, or talk: `vigil chat`.')
    else:
        output.message("Nothing fits. `vigil memory list` shows what there is.")
    if left_out := found.get("left_out"):
        output.message(f"{left_out} more did not fit into the answer.")


def show_hits(hits: Sequence[Mapping[str, Any]]) -> None:
    """Show each hit with what each part gave to its score; parts that gave nothing are left out."""
    shown = [name for name in PARTS if any(hit["parts"].get(name) for hit in hits)]
    parts = [Column(name.upper(), partial(_part, name=name)) for name in shown]
    score = Column("SCORE", lambda hit: f"{hit['score']:.2f}")
    tables.table((score, *parts, TYPE, WHEN, WHAT, ID), hits)


def _part(hit: Mapping[str, Any], name: str) -> str:
    value = hit["parts"].get(name)
    return f"{value:+.2f}" if value else ""


def show_one(memory: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]) -> None:
    """Show all that is known of a memory, and what it is associated with."""
    tables.fields(FIELDS, memory)
    if edges:
        output.data("")
        other = Column("MEMORY", partial(_other, id_=memory["id"]))
        tables.table((RELATION, WEIGHT, other), edges)


def show_graph(nodes: Iterable[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> None:
    """Show associations by what their ends say, then the ends with their ids."""
    if not edges:
        output.message("Nothing is associated here yet: a pass does it every few minutes.")
    names = {node["id"]: tables.short(node["content"], NODE_LENGTH_MAX) for node in nodes}
    ends = (
        Column("MEMORY", lambda edge: names.get(edge["from_id"], edge["from_id"])),
        RELATION,
        Column("MEMORY", lambda edge: names.get(edge["to_id"], edge["to_id"])),
        WEIGHT,
    )
    if edges:
        tables.table(ends, edges)
        output.data("")
    if names:
        output.table(("ID", "WHAT"), list(names.items()))


def show_stats(found: Mapping[str, Any]) -> None:
    """Show how much there is, and what finds it."""
    there = f"{count(found['memories'])}, {count_of(found['edges'], 'association')}"
    output.data(f"{there}; {found['ended']} ended")
    behind = found["position"] - found["vectors_position"]
    state = f", {count_of(behind, 'record')} behind" if behind > 0 else ""
    output.data(f"index {found['index']}, embedder {found['embedder']}{state}")
    if running := found["rebuild"]:
        output.data(f"rebuilding: {running['done']} of {running['total']} ({running['what']})")
    for title, counts in (("TYPE", found["by_type"]), ("SOURCE", found["by_source"])):
        if counts:
            output.data("")
            ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            output.table((title, "MEMORIES"), ordered)


def _used(memory: Mapping[str, Any]) -> str:
    times = memory.get("accesses")
    return f"{count_of(times, 'time')}, last {_utc(memory.get('accessed_at'))}" if times else ""


def _ended(memory: Mapping[str, Any]) -> str:
    return f"{memory['ended']} at {_utc(memory.get('ended_at'))}" if memory.get("ended") else ""


def _valid(memory: Mapping[str, Any]) -> str:
    start, end = memory.get("valid_from"), memory.get("valid_to")
    return f"{_utc(start)} to {_utc(end)}" if start or end else ""


def _utc(at: str | None) -> str:
    return wall.zoned(at) or "…"


def count(number: int) -> str:
    """Say how many memories.

    >>> count(1), count(2000)
    ('1 memory', '2,000 memories')
    """
    return f"{number:,} {'memory' if number == 1 else 'memories'}"


def _other(edge: Mapping[str, Any], id_: str) -> str:
    """Return the other end, with the direction."""
    return f"→ {edge['to_id']}" if edge["from_id"] == id_ else f"← {edge['from_id']}"


ID: Final = Column("ID", "id")
TYPE: Final = Column("TYPE", "type")
WHEN: Final = Column(
    "WHEN", lambda one: one.get("occurredAt") or one["created_at"], is_instant=True
)
WHAT: Final = Column("WHAT", lambda one: tables.short(one["content"]))
RELATION: Final = Column("RELATION", "relation")
WEIGHT: Final = Column("WEIGHT", lambda edge: f"{edge['weight']:.2f}")
COLUMNS: Final = (
    Column("IMPORTANCE", lambda one: f"{one['decayed']:.2f}"),
    TYPE,
    WHEN,
    Column("STATE", lambda one: one.get("ended") or "stands"),
    Column("SOURCE", "source"),
    WHAT,
    ID,
)
FIELDS: Final = (
    Column("id", "id"),
    Column("content", "content"),
    Column("type", "type"),
    Column("importance", lambda one: f"{one['importance']:.2f}, now {one['decayed']:.2f}"),
    Column("source", "source"),
    Column("also from", lambda one: ", ".join(one.get("also_from", ()))),
    Column("tainted", lambda one: one.get("is_tainted") and "descends from untrusted content"),
    Column("thread", "threadId"),
    Column("occurred", "occurredAt", is_instant=True),
    Column("saved", "created_at", is_instant=True),
    Column("expires", "expires_at", is_instant=True),
    Column("valid", _valid),
    Column("used", _used),
    Column("ended", _ended),
    Column("replaced by", "superseded_by"),
    Column("made of", lambda one: ", ".join(one.get("provenance", ()))),
)


def whole_id(beginning: str, *, user: str | None, agent: str, **_: Any) -> str:
    """Return the id of the memory whose id begins so. Raises: InvalidInput, NotReady."""
    there = options.client().memories(page_size=200, with_ended=True, user=user, agent=agent)
    return prefixes.whole("memory", beginning, (one["id"] for one in there))
