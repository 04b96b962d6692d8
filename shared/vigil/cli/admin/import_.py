"""`import`: what a person took along, into this home; or what another agent's home has."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from vigil.errors import InvalidInput, VigilError
from vigil.settings import config
from vigil.subjects import check_part
from vigil.words.amounts import count_of

from .. import exits, options, output
from ..tables import Result
from .backup import quiet, reported

if TYPE_CHECKING:
    from vigil.portable.importer import ImportReport

    from ..foreign.intake import HomeReport

Form = Literal["openclaw", "hermes"]


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
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Also what was deleted here since it was exported.")
    ] = False,
    from_: Annotated[
        Form | None,
        typer.Option("--from", help="The home of another agent instead: its memories, schedules."),
    ] = None,
    agent: Annotated[str, typer.Option(help="With --from: for whom.")] = "vigil",
    identity: Annotated[
        bool,
        typer.Option("--identity", help="With --from: its SOUL.md and IDENTITY.md, too."),
    ] = False,
) -> Result:
    """Take in what was exported: memories, tasks, goals, preferences, rows of the timetable, files,
    settings. The same again adds nothing. 3 if some of it can't be taken."""
    if user:
        check_part("user", user)
    if from_ is not None:
        return _of_home(from_, path, user, check_part("agent", agent), trusted, identity)
    if identity or agent != "vigil":
        raise InvalidInput("from", "--agent and --identity are for another agent's home")
    quiet()
    report = reported(
        f"{path} can't be read", lambda: asyncio.run(_import(path, user, trusted, deleted))
    )
    facts = msgspec.to_builtins(report)
    count = sum(not one.is_by_rule for one in report.refused)
    end = exits.NotReady(f"{count_of(count, 'line')} can't be taken") if count else None
    return Result(facts, partial(_show, facts), end)


async def _import(path: Path, user: str, is_trusted: bool, brings_back: bool) -> ImportReport:
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
        importer = Importer(
            *(reached.bus, settings.config, bundle, to, now),
            is_trusted=is_trusted,
            brings_back=brings_back,
        )
        return await importer.run()


def _show(facts: dict[str, Any]) -> None:
    taken, there = facts["taken"], facts["there"]
    kinds = sorted({*taken, *there})
    output.table(
        ("WHAT", "TAKEN", "THERE BEFORE"), [(k, taken.get(k, 0), there.get(k, 0)) for k in kinds]
    )
    if facts["deleted"]:
        what = ", ".join(f"{kind}: {count}" for kind, count in sorted(facts["deleted"].items()))
        output.data(f"Deleted here since it was exported, and left out: {what}.")
        output.data("--deleted takes these in, too.")
    for one in facts["refused"]:
        output.data(f"{one['part']}:{one['line']}: not taken: {one['reason']}")
    for name, reason in facts["left"].items():
        output.data(f"{name}: stays in the export: {reason}")


def _of_home(
    name: Form, folder: Path, user: str, agent: str, is_trusted: bool, has_identity: bool
) -> Result:
    from ..foreign.files import FORMS, texts_of
    from ..foreign.home import Unread, read
    from ..foreign.identity import take_identity
    from ..foreign.intake import HomeReport, speaking_for, take

    form, report, caller = FORMS[name], HomeReport(), options.client()
    texts, unread = texts_of(form, folder)
    found = read(form, texts, is_trusted=is_trusted)
    report.left += [Unread(file=file, why=why) for file, why in unread.items()]
    with speaking_for(caller, user) as client:
        take(client, agent, found, report)
    if has_identity:
        take_identity(caller, agent, found, report)
    left = len(report.left)
    end = exits.NotReady(f"{left} not taken, see above") if left else None
    return Result(report, partial(_show_home, report), end)


def _show_home(report: HomeReport) -> None:
    output.table(
        ("WHAT", "TAKEN", "THERE BEFORE"),
        [(kind, one.taken, one.known) for kind, one in report.taken.items()],
    )
    for name, why in report.kept.items():
        output.data(output.printable(f"{name}: {why}"))
    for name, text in report.replaced.items():
        output.data(f"{name} said before:\n{output.printable(text)}")
    for one in report.left:
        where = f"{one.file}:{one.line}" if one.line else one.file
        output.data(output.printable(f"not taken: {where}: {one.why}"))
