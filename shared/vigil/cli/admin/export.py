"""`export`: what a person has, in files that they can read and take along."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from vigil.errors import VigilError
from vigil.settings import config
from vigil.subjects import check_part

from .. import endings, output
from ..tables import Result
from .backup import quiet, reported

if TYPE_CHECKING:
    from vigil.portable.bundle import ExportManifest


def export(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE|DIR", help="A new .zip file, or a folder that isn't there."),
    ],
    user: Annotated[str, typer.Option(help="Whose data.")],
) -> Result:
    """Write all that a person has, and nobody else: Markdown to read, JSON lines for programs. It
    can be made while Vigil runs."""
    quiet()
    check_part("user", user)
    if path.exists():
        raise typer.BadParameter(f"{path} exists: an export never replaces another")
    manifest = reported(f"{path} can't be written", lambda: endings.run(_export(user, path)))
    facts = {"path": str(path), **msgspec.to_builtins(manifest)}
    return Result(facts, partial(_show, facts))


async def _export(user: str, path: Path) -> ExportManifest:
    from vigil.backup import reach
    from vigil.local.home import check_whole
    from vigil.marks import erasure
    from vigil.portable import export as exports

    settings = config.load()
    check_whole(settings.home)
    async with reach.admin(settings) as reached:
        if await erasure.is_any_open(reached.bus):
            raise VigilError("somebody is being erased: let `vigil erase` finish first")
        return await exports.export(reached.bus, settings, user, path, datetime.now(UTC))


def _show(facts: dict[str, Any]) -> None:
    rows = [(part["name"], part["count"], part["bytes"]) for part in facts["parts"]]
    output.table(("PART", "COUNT", "BYTES"), rows)
    output.data(f"Wrote {facts['path']}.")
    if not any(part["bytes"] for part in facts["parts"]):
        output.message(f"Nothing of {facts['user']} is there: another spelling?")
    output.message("It holds what was said, for its owner only; no token, key or password.")
