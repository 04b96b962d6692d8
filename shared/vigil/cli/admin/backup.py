"""`backup` and `restore`: everything in one file, and back (SPEC X-9)."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from vigil.errors import VigilError
from vigil.settings import config
from vigil.words.amounts import count_of

from .. import endings, output
from ..progress import Bar
from ..setup.up import command
from ..tables import Result

if TYPE_CHECKING:
    from vigil.backup.archive import Archive, Manifest

T = TypeVar("T")
File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", dir_okay=False)]


def backup(file: File) -> Result:
    """Write everything into one file, while it runs. The file holds all secrets: keep it safe."""
    from vigil.backup import backup as backups
    from vigil.backup import reach
    from vigil.local.home import check_whole
    from vigil.marks import erasure

    quiet()
    settings = config.load()

    async def save() -> Manifest:
        check_whole(settings.home)
        async with reach.admin(settings) as reached:
            if await erasure.is_any_open(reached.bus):
                raise VigilError("somebody is being erased: let `vigil erase` finish first")
            size = backups.stream_bytes(await backups.states(reached.bus))
            with Bar(size) as bar:
                now = datetime.now(UTC)
                return await backups.save(reached.bus, settings, file, now, bar.report)

    if file.exists():
        raise typer.BadParameter(f"{file} exists: a backup never replaces another")
    manifest = reported(f"{file} can't be written", lambda: endings.run(save()))
    facts = {"file": str(file), "bytes": file.stat().st_size, **facts_of(manifest)}
    return Result(facts, partial(_show_made, facts))


def _show_made(facts: dict[str, Any]) -> None:
    messages = sum(stream["messages"] for stream in facts["streams"].values())
    output.data(f"{facts['file']}  {facts['bytes']} bytes, {count_of(messages, 'message')}")
    output.message("It holds the credentials and everything that was said: for its owner only.")


def restore(
    file: File,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only check the file; change nothing.")
    ] = False,
    files_only: Annotated[
        bool,
        typer.Option(
            "--files-only",
            help="Only the files of the home, to start a broker of your own with; repeat without.",
        ),
    ] = False,
) -> Result:
    """Make an empty home, and its streams, what they were when the backup was made."""
    from vigil.backup import backup as backups
    from vigil.backup.archive import Archive

    quiet()

    def check() -> Archive:
        with Bar(file.stat().st_size) as bar:
            return Archive.open(file, bar.report)

    archive = reported(f"{file} can't be read", check)
    home = config.load().home if not verify else None
    if home is not None:
        backups.check_empty(home)
        reported(f"{home} can't be written", lambda: _restore(archive, home, files_only=files_only))
    facts = {"file": str(file), "home": home and str(home), **facts_of(archive.manifest)}
    return Result(facts, partial(_show_restored, facts, files_only=files_only))


def _show_restored(facts: dict[str, Any], *, files_only: bool) -> None:
    home = facts["home"]
    if home is None:
        output.data(f"{facts['file']} is whole: made {facts['made_at']:%Y-%m-%d %H:%M:%S} UTC")
        _show(facts["streams"])
    elif files_only:
        output.data(f"Wrote the files of {home}. Start the broker, then repeat without the option.")
    else:
        _show(facts["streams"])
        where = f"VIGIL_HOME={shlex.quote(home)} " if "VIGIL_HOME" in os.environ else ""
        output.data(f"Restored into {home}. Start it: {where}{command()} up")
        output.message("End the one that it's a copy of: both would remind, and send webhooks.")


def _restore(archive: Archive, home: Path, *, files_only: bool) -> None:
    from vigil.backup import backup as backups

    if files_only:
        backups.write_files(archive, home)
        return
    size = sum(archive.size(backups.STREAM_PREFIX + name) for name in archive.manifest.streams)
    with Bar(size) as bar:
        load = backups.settings_loader(home)
        asyncio.run(backups.restore(archive, home, load, bar.report))


def facts_of(manifest: Manifest) -> dict[str, Any]:
    streams = {
        name: {
            "messages": s.summary.messages,
            "first_seq": s.summary.first_seq,
            "last_seq": s.summary.last_seq,
        }
        for name, s in manifest.streams.items()
    }
    return {"made_at": manifest.made_at, "vigil": manifest.vigil, "streams": streams}


def _show(streams: dict[str, dict[str, int]]) -> None:
    rows = [(name, s["messages"], s["last_seq"]) for name, s in streams.items()]
    output.table(("STREAM", "MESSAGES", "LAST"), rows)


def quiet() -> None:
    """Log to stderr what is wrong, and nothing else: stdout is for the answer."""
    from vigil.observe import logs

    logs.configure(level=logging.WARNING)


def reported(what: str, work: Callable[[], T]) -> T:
    """Do `work`; a file that can't be used becomes a message instead of a traceback."""
    try:
        return work()
    except OSError as error:
        file = str(error.filename or "")
        where = f" ({file})" if file and file not in what else ""
        raise VigilError(f"{what}: {error.strerror or error}{where}") from error
