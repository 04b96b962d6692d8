"""What memories look like on a terminal: hits with their scores, lists, one of them, a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from vigil.sdk.client import Client

from .. import output, prefixes

CONTENT_LENGTH_MAX: Final = 100
NODE_LENGTH_MAX: Final = 50
PARTS: Final = (
    "text", "vector", "words", "gist", "speaker", "neighbours", "graph", "recency", "importance",
    "taint",
)  # fmt: skip


def explain_nothing(*, is_empty: bool) -> None:
    if is_empty:
        output.message('Nothing is remembered yet: `vigil memory save "…"`, or talk: `vigil chat`.')
    else:
        output.message("Nothing fits. `vigil memory list` shows what there is.")


def show_hits(hits: Sequence[Mapping[str, Any]]) -> None:
    """Show each hit with what each part gave to its score; parts that gave nothing are left out."""
    shown = [name for name in PARTS if any(hit["parts"].get(name) for hit in hits)]
    rows = [
        (f"{hit['score']:.2f}", *(_part(hit["parts"].get(name)) for name in shown), hit["type"],
         _when(hit), _short(hit["content"]), hit["id"])
        for hit in hits
    ]  # fmt: skip
    columns = ("SCORE", *(name.upper() for name in shown), "TYPE", "WHEN", "WHAT", "ID")
    output.table(columns, rows)


def _part(value: float | None) -> str:
    return f"{value:+.2f}" if value else "-"


def show_list(memories: Iterable[Mapping[str, Any]]) -> None:
    rows = [
        (f"{one['decayed']:.2f}", one["type"], _when(one), one.get("ended") or "stands",
         one["source"], _short(one["content"]), one["id"])
        for one in memories
    ]  # fmt: skip
    columns = ("IMPORTANCE", "TYPE", "WHEN", "STATE", "SOURCE", "WHAT", "ID")
    output.table(columns, rows)


def show_one(memory: Mapping[str, Any], edges: Sequence[Mapping[str, Any]]) -> None:
    """Show all that is known of a memory, and what it is associated with."""
    for name, value in facts(memory).items():
        if value:
            output.data(f"{name:<11}  {output.printable(value)}")
    if edges:
        output.data("")
        rows = [(e["relation"], f"{e['weight']:.2f}", _other(e, memory["id"])) for e in edges]
        output.table(("RELATION", "WEIGHT", "MEMORY"), rows)


def show_graph(nodes: Iterable[Mapping[str, Any]], edges: Iterable[Mapping[str, Any]]) -> None:
    """Show associations by what their ends say, then the ends with their ids."""
    names = {node["id"]: _short(node["content"], NODE_LENGTH_MAX) for node in nodes}
    rows = [
        (names.get(e["from_id"], e["from_id"]), e["relation"], names.get(e["to_id"], e["to_id"]),
         f"{e['weight']:.2f}")
        for e in edges
    ]  # fmt: skip
    if rows:
        output.table(("MEMORY", "RELATION", "MEMORY", "WEIGHT"), rows)
        output.data("")
    if names:
        output.table(("ID", "WHAT"), list(names.items()))


def show_stats(found: Mapping[str, Any]) -> None:
    """Show how much there is, and what finds it."""
    output.data(
        f"{count(found['memories'])}, {found['edges']} associations; {found['ended']} ended"
    )
    behind = found["position"] - found["vectors_position"]
    state = f", {behind} records behind" if behind > 0 else ""
    output.data(f"index {found['index']}, embedder {found['embedder']}{state}")
    if running := found["rebuild"]:
        output.data(f"rebuilding: {running['done']} of {running['total']} ({running['what']})")
    for title, counts in (("TYPE", found["by_type"]), ("SOURCE", found["by_source"])):
        if counts:
            output.data("")
            ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            output.table((title, "MEMORIES"), ordered)


def facts(memory: Mapping[str, Any]) -> dict[str, Any]:
    used = f"{memory.get('accesses', 0)} times, last {memory.get('accessed_at')}"
    state = f"{memory.get('ended')} at {memory.get('ended_at')}" if memory.get("ended") else ""
    return {
        "id": memory["id"],
        "content": memory["content"],
        "type": memory["type"],
        "importance": f"{memory['importance']:.2f}, now {memory['decayed']:.2f}",
        "source": memory["source"],
        "tainted": "descends from untrusted content" if memory.get("is_tainted") else "",
        "thread": memory.get("threadId"),
        "occurred": memory.get("occurredAt"),
        "saved": memory["created_at"],
        "expires": memory.get("expires_at"),
        "valid": _span(memory.get("valid_from"), memory.get("valid_to")),
        "used": used if memory.get("accesses") else "",
        "ended": state,
        "replaced by": memory.get("superseded_by"),
        "made of": ", ".join(memory.get("provenance", ())),
    }


def _span(start: str | None, end: str | None) -> str:
    return f"{start or '…'} to {end or '…'}" if start or end else ""


def count(number: int) -> str:
    """Say how many memories.

    >>> count(1), count(2000)
    ('1 memory', '2,000 memories')
    """
    return f"{number:,} {'memory' if number == 1 else 'memories'}"


def _when(memory: Mapping[str, Any]) -> str:
    return str(memory.get("occurredAt") or memory["created_at"])[:16].replace("T", " ")


def _short(text: str, length_max: int = CONTENT_LENGTH_MAX) -> str:
    return text if len(text) <= length_max else f"{text[:length_max]}…"


def _other(edge: Mapping[str, Any], id_: str) -> str:
    """Return the other end, with the direction."""
    return f"→ {edge['to_id']}" if edge["from_id"] == id_ else f"← {edge['from_id']}"


def whole_id(client: Client, beginning: str, user: str | None, agent: str) -> str:
    """Return the id of the memory whose id begins so. Raises: InvalidInput, NotReady."""
    there = client.memories(page_size=200, with_ended=True, user=user, agent=agent)
    return prefixes.whole("memory", beginning, (one["id"] for one in there))
