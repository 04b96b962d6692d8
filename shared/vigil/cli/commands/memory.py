"""`vigil memory`: what an agent remembers; save, find, look around, forget, keep in order."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any, Final, get_args

import typer

from vigil.contracts import MemoryType
from vigil.errors import Unavailable
from vigil.sdk.client import ApiError, Client

from .. import completion, exits, options, output, tables
from ..progress import Bar
from ..times import optional
from . import memory_view

POLL_S: Final = 0.3
PATIENCE_S: Final = 15.0
"""How long a rebuild may go on without anybody telling how far it is."""
app = typer.Typer(
    no_args_is_help=True,
    help="What an agent remembers: save, search, list, show, forget, undo, rebuild.",
)

Agent = Annotated[
    str, typer.Option("--agent", help="Whose memory.", autocompletion=completion.agents)
]
User = Annotated[
    str | None, typer.Option("--user", help="Somebody else's memory; needs an admin token.")
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help=f"Only these: {', '.join(get_args(MemoryType))}. May be repeated.",
        autocompletion=completion.memory_types,
    ),
]
Source = Annotated[
    str | None, typer.Option("--source", help="Only what came from exactly this source.")
]
Thread = Annotated[str | None, typer.Option("--thread", help="Only this conversation.")]
Since = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Not before: 2026-11-20, or 7d for a week ago.")
]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="Not after.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="WHEN", help="What was believed then.")
]
ImportanceMin = Annotated[
    float | None,
    typer.Option("--importance-min", min=0, max=1, help="At least so important, after decay."),
]
Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Of a memory, as `vigil memory list` shows; its beginning is enough."
    ),
]


# ---------------------------------------------------------------- writing


@app.command()
def save(
    content: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to remember.")],
    kind: Annotated[
        str,
        typer.Option(
            "--type", metavar="TYPE", help="What it is.", autocompletion=completion.memory_types
        ),
    ] = "fact",
    importance: Annotated[
        float | None, typer.Option(min=0, max=1, help="Default: the type's.")
    ] = None,
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "cli",
    thread: Annotated[str | None, typer.Option(help="The conversation it's part of.")] = None,
    at: Annotated[
        str | None, typer.Option(metavar="WHEN", help="When it happened. Default: now.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="When it is forgotten by itself.")
    ] = None,
    volatile: Annotated[
        bool, typer.Option("--volatile", help="A passing note; may be merged after a week.")
    ] = False,
    key: Annotated[
        str | None, typer.Option(help="A name of yours: the same again saves nothing new.")
    ] = None,
    agent: Agent = "vigil",
    user: User = None,
    json: options.Json = False,
) -> None:
    """Remember something."""
    _, client = options.here()
    now = datetime.now(UTC)
    saved = client.save_memory(
        " ".join(content),
        type=kind,
        importance=importance,
        source=source,
        thread=thread,
        occurred_at=optional("at", at, now),
        expires_at=optional("expires", expires, now),
        stability="volatile" if volatile else None,
        idempotency_key=key,
        user=user,
        agent=agent,
    )
    if json:
        output.json(saved)
        return
    output.data(saved["id"])
    output.message("It was saved before." if saved.get("is_repeat") else "Saved.")


@app.command()
def forget(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Of memories, or their beginnings.")
    ],
    agent: Agent = "vigil",
    user: User = None,
    json: options.Json = False,
) -> None:
    """Forget memories for good. 3 if one isn't there; the others are forgotten all the same."""
    _, client = options.here()
    forgotten, missing = [], []
    for given in ids:
        id_ = given
        try:
            id_ = memory_view.whole_id(client, id_, user, agent)
            client.forget(id_, user=user, agent=agent)
        except (ApiError, exits.NotReady) as error:
            if isinstance(error, ApiError) and error.status != 404:
                raise
            missing.append(id_)
        else:
            forgotten.append(id_)
    if json:
        output.json({"forgotten": forgotten, "missing": missing})
    elif forgotten:
        output.message(f"Forgot {memory_view.count(len(forgotten))}.")
    if missing:
        raise exits.NotReady(f"no such memory: {', '.join(missing)}")


@app.command()
def undo(
    source: Annotated[str, typer.Argument(help="Where the memories came from.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    agent: Agent = "vigil",
    user: User = None,
    json: options.Json = False,
) -> None:
    """Revert a source: everything it told, and everything that was derived from that."""
    _, client = options.here()
    if not yes:
        text = f"Revert everything from {source!r} and what was made of it?"
        typer.confirm(text, abort=True, err=True)
    done = client.undo_memories(source, user=user, agent=agent)
    if json:
        output.json(done)
        return
    undone, again = (
        len(done[name]) + done.get(f"{name}_left_out", 0) for name in ("undone", "restored")
    )
    restored = f"; {memory_view.count(again)} stand again" if again else ""
    output.message(f"Reverted {memory_view.count(undone)}{restored}.")


# ---------------------------------------------------------------- looking


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="What to look for.")],
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 10,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="hybrid (default), text or vector.")
    ] = None,
    kind: Types = None,
    source: Source = None,
    thread: Thread = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    importance_min: ImportanceMin = None,
    agent: Agent = "vigil",
    user: User = None,
    json: options.Json = False,
) -> None:
    """Find what fits best, and show why each was found."""
    _, client = options.here()
    text = " ".join(query).strip()
    if not text:
        raise typer.BadParameter("an empty query finds nothing: `vigil memory list` lists")
    now = datetime.now(UTC)
    found = client.recall(
        text,
        limit=limit,
        mode=mode,
        types=kind or (),
        source=source,
        thread=thread,
        since=optional("since", since, now),
        until=optional("until", until, now),
        as_of=optional("as-of", as_of, now),
        importance_min=importance_min,
        user=user,
        agent=agent,
    )
    if json:
        output.json(found)
        return
    if "vectors" in found["degraded"]:
        output.message("The vectors can't be asked now: this is what the text alone finds.")
    if not found["memories"]:
        memory_view.explain_nothing(is_empty=found.get("is_empty", False))
        return
    memory_view.show_hits(found["memories"])
    if left_out := found.get("left_out"):
        output.message(f"{left_out} more did not fit into the answer.")


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    sort: Annotated[
        str | None, typer.Option(metavar="SORT", help="recent (default), importance or accessed.")
    ] = None,
    ended: Annotated[
        bool, typer.Option("--ended", help="Those that stand no more, too, and why.")
    ] = False,
    kind: Types = None,
    source: Source = None,
    thread: Thread = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    importance_min: ImportanceMin = None,
    agent: Agent = "vigil",
    user: User = None,
    json: options.Json = False,
) -> None:
    """List memories: the newest first, the most important, or the most used."""
    _, client = options.here()
    now = datetime.now(UTC)
    pages = client.memories(
        sort=sort,
        page_size=min(limit, 200),
        with_ended=ended,
        types=kind or (),
        source=source,
        thread=thread,
        since=optional("since", since, now),
        until=optional("until", until, now),
        as_of=optional("as-of", as_of, now),
        importance_min=importance_min,
        user=user,
        agent=agent,
    )
    found = [memory for _, memory in zip(range(limit), pages, strict=False)]
    empty = 'Nothing is remembered here: `vigil memory save "…"` saves something.'
    tables.listing("memories", found, memory_view.COLUMNS, is_json=json, empty=empty)


@app.command()
def show(id_: Id, agent: Agent = "vigil", user: User = None, json: options.Json = False) -> None:
    """Show one memory: where it comes from, what became of it, what it's associated with."""
    _, client = options.here()
    found = client.memory(memory_view.whole_id(client, id_, user, agent), user=user, agent=agent)
    if json:
        output.json(found)
        return
    memory_view.show_one(found["memory"], found["edges"])


@app.command()
def graph(
    id_: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="The memory to begin with. Default: the best connected."
        ),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, max=3, help="How many steps away.")] = 1,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many memories.")] = 50,
    agent: Agent = "vigil",
    user: User = None,
    json: options.Json = False,
) -> None:
    """Show how memories are associated."""
    _, client = options.here()
    if id_ is not None:
        id_ = memory_view.whole_id(client, id_, user, agent)
    found = client.memory_graph(id_, depth=depth, limit=limit, user=user, agent=agent)
    if json:
        output.json(found)
        return
    if not found["edges"]:
        output.message("Nothing is associated here yet: a pass does it every few minutes.")
    memory_view.show_graph(found["nodes"], found["edges"])


@app.command()
def stats(agent: Agent = "vigil", user: User = None, json: options.Json = False) -> None:
    """Show how much is remembered, and what finds it."""
    _, client = options.here()
    found = client.memory_stats(user=user, agent=agent)
    if json:
        output.json(found)
        return
    memory_view.show_stats(found)


# ---------------------------------------------------------------- keeping it in order


@app.command()
def maintain(
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="Only this one's memory.", autocompletion=completion.agents),
    ] = None,
    user: User = None,
    json: options.Json = False,
) -> None:
    """Prune and merge now. With an admin token, and neither --agent nor --user: all memories."""
    _, client = options.here()
    done = client.maintain(user=user, agent=agent)
    tables.done(output.printable(done["message"]), done, is_json=json)


@app.command()
def rebuild(
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Only the vectors: after another embedder was set.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Until it is done.")] = True,
    json: options.Json = False,
) -> None:
    """Make the indexes anew from the log. Needs an admin token; recalls go on meanwhile."""
    _, client = options.here()
    started = client.rebuild_memories(what="vectors" if vectors else "all")
    begun_s = time.monotonic()
    found = _wait_rebuilt(client) if wait else None
    took_s = round(time.monotonic() - begun_s, 1)
    if json:
        output.json(started | ({"took_s": took_s, "stats": found} if wait else {}))
    elif wait:
        output.message(f"Rebuilt in {took_s} s.")
    else:
        output.message("Started: `vigil memory stats` shows how far it is.")


def _wait_rebuilt(client: Client) -> dict[str, Any]:
    """Wait until no rebuild runs. Raises: Timeout, nobody tells how far it is."""
    heard_s = time.monotonic()
    with Bar(100) as bar:
        while True:
            try:
                found = client.memory_stats()
            except (Unavailable, ApiError) as error:
                is_away = isinstance(error, Unavailable) or error.status == 503
                if not is_away or time.monotonic() - heard_s > PATIENCE_S:
                    raise
            else:
                heard_s = time.monotonic()
                running = found["rebuild"]
                if running is None:
                    return found
                share = running["done"] / max(running["total"], 1)
                bar.report(f"{running['done']} of {running['total']}", int(share * 100))
            time.sleep(POLL_S)
