"""`import`: what a person took along, into this home."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from vigil.errors import VigilError
from vigil.settings import config
from vigil.subjects import check_part

from .. import exits, output
from ..tables import Result
from .backup import quiet, told

if TYPE_CHECKING:
    from vigil.portable.importer import ImportReport


def import_(
    path: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="What `vigil export` wrote.", exists=True)
    ],
    user: Annotated[str, typer.Option(help="Whose it becomes; left out: whose it was.")] = "",
    trusted: Annotated[
        bool,
        typer.Option(
            "--trusted", help="You vouch for it: it keeps its standing; else it's from outside."
        ),
    ] = False,
) -> Result:
    """Take in what was exported: memories, tasks, goals, preferences, rows of the timetable, files,
    settings. The same again adds nothing. 3 if some of it can't be taken."""
    quiet()
    if user:
        check_part("user", user)
    report = told(f"{path} can't be read", lambda: asyncio.run(_import(path, user, trusted)))
    facts = msgspec.to_builtins(report)
    count = sum(not one.is_by_rule for one in report.refused)
    end = exits.NotReady(f"{count} lines can't be taken") if count else None
    return Result(facts, partial(_show, facts), end)


async def _import(path: Path, user: str, is_trusted: bool) -> ImportReport:
    from vigil.backup import reach
    from vigil.local.home import check_whole
    from vigil.marks import erasure
    from vigil.portable.bundle import Bundle
    from vigil.portable.importer import Importer

    settings = config.load()
    check_whole(settings.home)
    bundle, now = Bundle(path), datetime.now(UTC)
    to = check_part("user", user or bundle.manifest.user)
    async with reach.admin(settings) as reached:
        if await erasure.is_any_open(reached.bus):
            raise VigilError("somebody is being erased: let `vigil erase` finish first")
        importer = Importer(reached.bus, settings.config, bundle, to, now, is_trusted=is_trusted)
        return await importer.run()


def _show(facts: dict[str, Any]) -> None:
    taken, there = facts["taken"], facts["there"]
    kinds = sorted({*taken, *there})
    output.table(
        ("WHAT", "TAKEN", "THERE BEFORE"), [(k, taken.get(k, 0), there.get(k, 0)) for k in kinds]
    )
    for one in facts["refused"]:
        output.data(f"{one['part']}:{one['line']}: not taken: {one['reason']}")
    for name, reason in facts["left"].items():
        output.data(f"{name}: stays in the export: {reason}")
