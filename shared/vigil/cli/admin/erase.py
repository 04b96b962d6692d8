"""`erase`: a person, from everything, and the proof of it (SPEC X-8)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import typer

from vigil.settings import config
from vigil.settings.config import Settings
from vigil.subjects import check_part

from .. import exits, output
from ..progress import Bar
from ..tables import Result
from . import programs
from .backup import quiet, reported

if TYPE_CHECKING:
    from vigil.backup.reach import Reached, Where
    from vigil.bus.bus import Bus
    from vigil.erasure.residue import Residue

INDEX_WAIT_S: Final = 170.0
"""The broker rewrites its indexes every two minutes, and up to half a minute later."""
INDEX_POLL_S: Final = 1.0
Verdict = Literal["clean", "pending", "not clean", "not verifiable"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    user_hash: str
    deleted: dict[str, int]
    tokens: int
    memory_replicas: int
    """Memory services that ran, and hold nothing any more. Others must have their files here."""
    workspaces: int
    """Folders of theirs in which tools worked, under this home."""
    credentials: tuple[str, ...]
    files: Verdict
    left: tuple[Residue, ...]
    """Files that still name the person. With "clean" they are none of Vigil's to change."""


def erase(
    user: Annotated[str, typer.Option(help="Whom. This can't be undone.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Don't wait for the broker's indexes.")
    ] = False,
) -> Result:
    """Erase a person: what they said and were told, timers, tokens, everything. Run it again if
    it was interrupted."""
    quiet()
    check_part("user", user)
    if not yes:
        typer.confirm(f"Erase everything of {user}, for good?", abort=True, err=True)
    settings = config.load()
    wait_s = 0.0 if no_wait else INDEX_WAIT_S
    outcome = reported("a file can't be cleaned", lambda: _erase(settings, user, wait_s))
    if not (outcome.deleted or outcome.tokens or outcome.credentials or outcome.workspaces):
        output.message(f"Nothing of {user} was there: erased before, or another spelling?")
    output.message("Backups made before still hold the data: delete them.")
    code = {"not clean": exits.FAILURE, "pending": exits.NOT_READY}.get(outcome.files)
    return Result(outcome, partial(_show, outcome), None if code is None else typer.Exit(code))


def _erase(settings: Settings, user: str, wait_s: float) -> Outcome:
    from vigil.local.home import check_whole
    from vigil.marks import erasure

    check_whole(settings.home)
    where, facts = asyncio.run(_from_streams(settings, user))
    _drop_token_file(settings.home, facts.pop("token_ids"))
    if where == "started":
        _mend_blocks(settings, user)
    residues = _verify(settings.home, user, where, wait_s, facts.pop("swept_ns"))
    ours = [r for r in residues if r.kind in ("log", "index", "records", "memory")]
    return Outcome(
        user_hash=erasure.hash_of(user),
        files=_verdict(where, ours),
        left=tuple(residues),
        **facts,
    )


async def _from_streams(settings: Settings, user: str) -> tuple[Where, dict[str, Any]]:
    from vigil import crash
    from vigil.backup import projections, reach, workspaces
    from vigil.calendars import mirror as calendars
    from vigil.clock import SystemClock
    from vigil.erasure import residue
    from vigil.erasure.erase import Eraser
    from vigil.erasure.sweep import QUIET_S
    from vigil.marks import erasure

    clock = SystemClock()
    async with reach.admin(settings) as reached:
        with Bar(0) as bar:
            eraser = Eraser(reached.bus, user, clock, bar.report)
            mark = await erasure.begin(reached.bus, user, clock.now())
            ended = await _end_credentials(settings, reached, user)
            # Only what runs may still have something of theirs in hand.
            await eraser.run(quiet_s=0.0 if reached.where == "started" else QUIET_S)
            await asyncio.to_thread(projections.scrub, settings.memory)
            crash.point("erase.projections")
            folders = await asyncio.to_thread(
                workspaces.scrub, settings.workspaces, lambda owner: owner == user
            )
            await asyncio.to_thread(
                workspaces.scrub, settings.home / calendars.FOLDER, lambda owner: owner == user
            )
            crash.point("erase.workspaces")
            if reached.where != "external":
                known = residue.schedules_of(settings.home, user)
                await eraser.forget_schedules(known)
            await erasure.end(reached.bus, user, mark, clock.now())
            # The tombstone took the place of the mark: what that held is no secret.
            left = await eraser.left()
            swept_ns = time.time_ns()
        if left:
            raise exits.NotReady(f"something came meanwhile ({left}): run it again")
        swept = eraser.swept
    return reached.where, {
        "deleted": swept.deleted,
        "tokens": len(swept.tokens),
        "memory_replicas": swept.replicas,
        "workspaces": folders,
        "credentials": tuple(ended),
        "token_ids": swept.tokens,
        "swept_ns": swept_ns,
    }


async def _end_credentials(settings: Settings, reached: Reached, user: str) -> list[str]:
    """End the credentials of the person's programs, on the broker and in the home."""
    from vigil.broker.provision import remove_outside
    from vigil.settings import credentials
    from vigil.subjects import signals_of

    folder = settings.credentials
    known = [*credentials.outside(folder), *credentials.begun_drops(folder)]
    found = [c for c in known if c.user == user]
    for credential in found:
        await remove_outside(reached.bus, credential)
        credentials.drop_outside(folder, credential)
    for name in await _consumers(reached.bus, signals_of(user)):
        await reached.bus.api(f"CONSUMER.DELETE.SIGNALS.{name}", {})
    await asyncio.to_thread(_reload_broker, settings, reached, user, has_found=bool(found))
    return [credential.id for credential in found]


async def _consumers(bus: Bus, filter_subject: str) -> list[str]:
    """Return the consumers of SIGNALS with that filter; the broker lists 256 at a time."""
    found: list[str] = []
    offset, total = 0, 1
    while offset < total:
        listed = await bus.api("CONSUMER.LIST.SIGNALS", {"offset": offset})
        page, total = listed.get("consumers") or [], listed["total"]
        found += [c["name"] for c in page if c["config"].get("filter_subject") == filter_subject]
        offset += len(page) or total
    return found


def _reload_broker(settings: Settings, reached: Reached, user: str, *, has_found: bool) -> None:
    """Have the broker forget the credentials that it still knows."""
    from vigil.broker import reload

    if reached.where == "external":
        if has_found:
            output.message(programs.FOREIGN)
        return
    conf = settings.home / "nats" / "nats.conf"
    if f"event.{user}." in conf.read_text("utf-8"):
        reload.reload(settings.home, reached.broker_pid)


def _drop_token_file(home: Path, ended: Sequence[str]) -> None:
    """Remove the token that `vigil up` keeps, if it was the person's."""
    from vigil.local.token import read_token, token_file
    from vigil.settings import tokens

    text = read_token(home)
    if text is not None and tokens.token_id_of(text) in ended:
        token_file(home).unlink()
        output.message("The token of this home was theirs: `vigil up` makes another.")


# ---------------------------------------------------------------- the files


def _mend_blocks(settings: Settings, user: str) -> None:
    """Overwrite what the broker left behind. It is stopped, and nobody may start it meanwhile."""
    from vigil.erasure import blocks
    from vigil.local import runfile

    lock = runfile.Lock(settings.run_file)
    lock.acquire()
    try:
        blocks.mend(settings.broker_store, user)
    finally:
        lock.release()


def _verify(home: Path, user: str, where: Where, wait_s: float, swept_ns: int) -> list[Residue]:
    """Mend the logs and look through every file; wait for what the broker is still to rewrite."""
    from vigil.erasure import residue

    residue.mend_logs(home, user)
    deadline = time.monotonic() + (wait_s if where == "running" else 0.0)
    is_told = False
    while residue.scan(home, user, swept_ns=swept_ns, files="*.db"):
        if time.monotonic() > deadline:
            break
        if not is_told:
            is_told = True
            output.message("Waiting for the broker to rewrite its indexes (up to three minutes) …")
        time.sleep(INDEX_POLL_S)
    return residue.scan(home, user, swept_ns=swept_ns)


def _verdict(where: Where, ours: Sequence[Residue]) -> Verdict:
    if any(r.kind != "index" for r in ours):
        return "not clean"
    if ours:
        return "pending"
    return "not verifiable" if where == "external" else "clean"


_WORDS: Final[dict[Verdict, str]] = {
    "clean": "no file under the home names them any more",
    "pending": "the broker has not rewritten its indexes yet: run it again in some minutes",
    "not clean": "some files still name them, see below",
    "not verifiable": "the broker isn't in this home: its files were not looked at, nor those of "
    "its machines; docs/operations.md lists what it leaves behind",
}


def _show(outcome: Outcome) -> None:
    rows = sorted(outcome.deleted.items())
    rows += [("tokens", outcome.tokens), ("workspaces", outcome.workspaces)]
    output.table(("STREAM", "ERASED"), rows)
    but = ", but for what isn't Vigil's to change" if outcome.left else ""
    output.data(f"Files: {_WORDS[outcome.files]}{but if outcome.files == 'clean' else ''}.")
    for residue in outcome.left:
        output.data(f"  {residue.file} ({residue.count}): {residue.why}")
