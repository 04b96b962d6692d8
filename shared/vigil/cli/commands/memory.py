"""`vigil memory`: what an agent remembers; save, find, look around, forget, keep in order."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from vigil.errors import InvalidInput, Unavailable
from vigil.memory.operations.forget import Forget
from vigil.memory.operations.get import Get
from vigil.memory.operations.graph import GetGraph
from vigil.memory.operations.list import ListMemories
from vigil.memory.operations.recall import Recall
from vigil.memory.operations.save import Save
from vigil.memory.operations.stats import GetStats
from vigil.memory.operations.undo import Undo
from vigil.memory.questions import Filters
from vigil.sdk.client import ApiError, Client, is_passing

from .. import completion, exits, options, output, tables
from ..documents.files import files_at
from ..documents.intake import forget_gone, take_in
from ..documents.sources import shown
from ..field_options import User, options_of
from ..progress import Bar
from ..registry import CommandLine
from ..tables import Result
from . import memory_view

POLL_S: Final = 0.3
PATIENCE_S: Final = 15.0
"""How long a rebuild may go on without anybody telling how far it is."""
app = CommandLine(
    no_args_is_help=True,
    help="What an agent remembers: save, import, search, list, show, forget, undo, rebuild.",
)

FILTERS: Final = Filters.__struct_fields__
Id = Annotated[str, options.id_of("a memory", "vigil memory list")]


# ---------------------------------------------------------------- writing


@app.command()
@options_of(Save, "type", "importance", "thread", "occurred_at", "expires_at", "key")
def save(
    content: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What to remember.")],
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "cli",
    volatile: Annotated[
        bool, typer.Option("--volatile", help="A passing note; may be merged after a week.")
    ] = False,
    **given: Any,
) -> Result:
    """Remember something."""
    stability = "volatile" if volatile else None
    saved = _ask("save", content=" ".join(content), source=source, stability=stability, **given)
    return Result(saved, partial(memory_view.show_saved, saved))


@app.command("import")
@options_of(Save)
def import_(
    path: Annotated[Path, typer.Argument(help="A file, or a folder of files.")],
    trusted: Annotated[
        bool,
        typer.Option("--trusted", help="You vouch for what they say; else it's from outside."),
    ] = False,
    gone: Annotated[
        bool,
        typer.Option("--gone", help="Forget files whose folder is empty or missing, too."),
    ] = False,
    **given: Any,
) -> Result:
    """Remember what files say: text, Markdown, HTML, PDF. A changed one is taken in anew, and one
    that was removed from the folder is forgotten.

    `vigil memory undo file:PATH` forgets a file.
    """
    if not path.exists() and not gone:
        raise InvalidInput("path", f"{path} isn't there; --gone forgets what was read of it")
    client = options.client()
    found = files_at(path)
    forgotten, missing = forget_gone(client, found.seen, is_sure=gone, **given)
    taken = [take_in(client, one, is_trusted=trusted, **given) for one in found.files]
    facts = {
        "files": msgspec.to_builtins(taken),
        "forgotten": msgspec.to_builtins(forgotten),
        "kept": [{"folder": shown(folder), "files": files} for folder, files in missing.kept],
    }
    wrong = []
    if left_out := sum(one.outcome == "left out" for one in taken):
        wrong.append(f"{left_out} can't be read")
    wrong += [
        f"{shown(folder)} lacks {files} that were there, and may be out of reach: they are kept; "
        "--gone forgets them"
        for folder, files in missing.kept
    ]
    end = exits.NotReady("; ".join(wrong)) if wrong else None
    return Result(facts, partial(memory_view.show_taken_in, taken, forgotten), end)


@app.command()
@options_of(Forget)
def forget(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Of memories, or their beginnings.")
    ],
    **given: Any,
) -> Result:
    """Forget memories for good; what one had corrected isn't said again either, but after `undo`
    instead. 3 if one isn't there; the others are forgotten all the same."""
    forgotten, missing = [], []
    for given_id in ids:
        id_ = given_id
        try:
            id_ = memory_view.whole_id(id_, **given)
            _ask("forget", id=id_, **given)
        except (ApiError, exits.NotReady) as error:
            if isinstance(error, ApiError) and error.status != 404:
                raise
            missing.append(id_)
        else:
            forgotten.append(id_)
    end = exits.NotReady(f"no such memory: {', '.join(missing)}") if missing else None
    facts = {"forgotten": forgotten, "missing": missing}
    return Result(facts, partial(memory_view.show_forgotten, forgotten), end)


@app.command()
@options_of(Undo)
def undo(
    source: Annotated[str, typer.Argument(help="Where the memories came from.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    **given: Any,
) -> Result:
    """Revert a source: everything it told, and everything that was derived from that."""
    if not yes:
        text = f"Revert everything from {source!r} and what was made of it?"
        typer.confirm(text, abort=True, err=True)
    undone = _ask("undo", source=source, **given)
    return tables.done(memory_view.undone(undone), undone)


# ---------------------------------------------------------------- looking


@app.command()
@options_of(Recall, "limit", "mode", "with_pruned", *FILTERS)
def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="What to look for.")],
    **given: Any,
) -> Result:
    """Find what fits best, and show why each was found."""
    text = " ".join(query).strip()
    if not text:
        raise typer.BadParameter("an empty query finds nothing: `vigil memory list` lists")
    found = _ask("recall", query=text, **given)
    return Result(found, partial(memory_view.show_found, found))


@app.command("list")
@options_of(ListMemories, "sort", "with_ended", *FILTERS)
def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50, **given: Any
) -> Result:
    """List memories: the newest first, the most important, or the most used."""
    pages = options.client().memories(page_size=min(limit, 200), **given)
    found = [memory for _, memory in zip(range(limit), pages, strict=False)]
    empty = 'Nothing is remembered here: `vigil memory save "…"` saves something.'
    return tables.listing("memories", found, memory_view.COLUMNS, empty=empty)


@app.command()
@options_of(Get)
def show(id_: Id, **given: Any) -> Result:
    """Show one memory: where it comes from, what became of it, what it's associated with."""
    found = _ask("get", id=memory_view.whole_id(id_, **given), **given)
    return Result(found, partial(memory_view.show_one, found["memory"], found["edges"]))


@app.command()
@options_of(GetGraph, "depth")
def graph(
    id_: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="The memory to begin with. Default: the best connected."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many memories.")] = 50,
    **given: Any,
) -> Result:
    """Show how memories are associated."""
    if id_ is not None:
        id_ = memory_view.whole_id(id_, **given)
    found = _ask("graph", id=id_, limit=limit, **given)
    return Result(found, partial(memory_view.show_graph, found["nodes"], found["edges"]))


@app.command()
@options_of(GetStats)
def stats(**given: Any) -> Result:
    """Show how much is remembered, and what finds it."""
    found = _ask("stats", **given)
    return Result(found, partial(memory_view.show_stats, found))


def _ask(operation: str, *, user: str | None, agent: str, **fields: Any) -> dict[str, Any]:
    return options.client().ask_memory(operation, fields, user=user, agent=agent)


# ---------------------------------------------------------------- keeping it in order


@app.command()
def maintain(
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="Only this one's memory.", autocompletion=completion.agents),
    ] = None,
    user: User = None,
) -> Result:
    """Prune and merge now. With an admin token, and neither --agent nor --user: all memories."""
    done = options.client().maintain(user=user, agent=agent)
    return tables.done(output.printable(done["message"]), done)


@app.command()
def rebuild(
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Only the vectors: after another embedder was set.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Until it is done.")] = True,
) -> Result:
    """Make the indexes anew from the log. Needs an admin token; recalls go on meanwhile."""
    client = options.client()
    started = client.rebuild_memories(what="vectors" if vectors else "all")
    if not wait:
        return tables.done("Started: `vigil memory stats` shows how far it is.", started)
    begun_s = time.monotonic()
    found = _wait_rebuilt(client)
    took_s = round(time.monotonic() - begun_s, 1)
    return tables.done(f"Rebuilt in {took_s} s.", started | {"took_s": took_s, "stats": found})


def _wait_rebuilt(client: Client) -> dict[str, Any]:
    """Wait until no rebuild runs. Raises: Timeout, nobody tells how far it is."""
    heard_s = time.monotonic()
    with Bar(100) as bar:
        while True:
            try:
                found = client.memory_stats()
            except (Unavailable, ApiError) as error:
                if not is_passing(error) or time.monotonic() - heard_s > PATIENCE_S:
                    raise
            else:
                heard_s = time.monotonic()
                running = found["rebuild"]
                if running is None:
                    return found
                share = running["done"] / max(running["total"], 1)
                bar.report(f"{running['done']} of {running['total']}", int(share * 100))
            time.sleep(POLL_S)
