"""`upgrade`: what a newer Vigil does to a home of an older one, tried, done, and taken back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from vigil.errors import ConfigError
from vigil.local import runfile
from vigil.settings import config

from .. import endings, output, tables
from ..tables import Result
from .backup import quiet, reported

if TYPE_CHECKING:
    from vigil.backup.rehearsal import Rehearsed
    from vigil.upgrade.migrate import Upgraded


def upgrade(
    check: Annotated[
        bool, typer.Option("--check", help="Try it on a copy; change nothing.")
    ] = False,
    back: Annotated[
        bool, typer.Option("--back", help="Put back the files that the last upgrade changed.")
    ] = False,
) -> Result:
    """Bring this home up to date, as the next `vigil up` would by itself."""
    from vigil.local.home import check_whole
    from vigil.upgrade import migrate

    if check and back:
        raise typer.BadParameter("one of --check and --back")
    quiet()
    settings = config.unread()
    home = settings.home
    if not home.exists():
        raise _nothing_in(home)
    if check:
        from vigil.backup import rehearsal

        tried = reported(
            "the copy can't be made", lambda: endings.run(rehearsal.rehearse(settings))
        )
        return Result(msgspec.structs.asdict(tried), partial(_show_tried, tried))
    if not (home / "vigil.toml").exists():
        raise _nothing_in(home)
    lock = runfile.Lock(settings.run_file)
    lock.acquire()
    try:
        if back:
            put = reported("it can't be put back", lambda: migrate.back(home))
            said = f"Put back what {', '.join(put.steps)} had changed. Vigil from before goes on."
            return tables.done(said, {"steps": put.steps})
        check_whole(home)
        done = reported("it can't be brought up to date", lambda: migrate.bring_up(home))
    finally:
        lock.release()
    return tables.done(migrate.in_words(done), facts_of(done))


def facts_of(done: Upgraded | None) -> dict[str, Any]:
    return {"steps": done.steps if done else (), "kept": done and done.kept and str(done.kept)}


def _nothing_in(home: Path) -> ConfigError:
    return ConfigError(f"there is nothing in {home}: `vigil up` was never run there")


def _show_tried(tried: Rehearsed) -> None:
    from vigil.upgrade.migrate import WHY

    for name in tried.steps:
        output.data(f"{name}: {WHY.get(name, name)}")
    if not tried.steps:
        output.data("No step is to be taken.")
    for name in tried.changed:
        output.data(f"It would change {name}, and keep it as it is beside.")
    count = sum(tried.records.values())
    output.data(f"Every record can be read ({count}). Nothing was changed.")
