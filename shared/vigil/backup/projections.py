"""What the memory service makes of the log, and a person's part in it (SPEC X-8).

The log is swept, but each replica has a database and vectors that were made of it before.

    ask     the replicas that run remove it themselves, and say so once they find nothing any more
    scrub   a folder that no replica uses is overwritten and removed: whoever takes it next makes
            all of it anew from the log
    owners  whose memories a database has, for the scan

Folders of replicas on other machines that don't run can't be reached from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from .. import files
from ..bus.bus import Bus
from ..errors import Unavailable
from ..marks import erasure
from ..memory.questions import ERASE, SERVICE, Erased
from ..observe.health import HEALTH, Health

DATABASE: Final = "memory.db"
LOCK: Final = "lock"
"""Of a slot: whoever uses it has locked it (services/memory/replica/slots.py)."""
HEALTH_WAIT_S: Final = 1.0
REPLICAS_MAX: Final = 1000
ANSWER_WAIT_S: Final = 20.0
"""A database is written anew without the person: seconds, if it is large."""
PATIENCE_S: Final = 300.0
"""How long replicas may take; one that makes a memory anew which a team shares reads all of it."""
AGAIN_S: Final = 0.5


async def ask(bus: Bus, user: str, report: Callable[[str, int], None]) -> int:
    """Have every replica remove the person; return how many there are.

    Raises:
        Unavailable: one doesn't manage to; call again.
    """
    subject = f"{ERASE}.{erasure.hash_of(user)}"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    while True:
        replicas = await _replicas(bus)
        answers = await _answers(bus, subject, len(replicas)) if replicas else {}
        done = {instance for instance, answer in answers.items() if answer.is_done}
        report("memory", len(done & replicas))
        if replicas <= done:
            return len(replicas)
        if loop.time() > deadline:
            late = sorted(
                f"{instance}: {answers[instance].left}" if instance in answers else instance
                for instance in replicas - done
            )
            raise Unavailable(f"memory still holds something ({'; '.join(late)}): run it again")
        await asyncio.sleep(AGAIN_S)


async def _replicas(bus: Bus) -> set[str]:
    """Return the memory services that run, by instance."""
    found = await bus.ask_all(HEALTH, b"", count=REPLICAS_MAX, timeout=HEALTH_WAIT_S)
    healths = [msgspec.json.decode(data, type=Health) for data in found]
    return {health.instance for health in healths if health.service == SERVICE}


async def _answers(bus: Bus, subject: str, count: int) -> dict[str, Erased]:
    """Ask all of them; what refuses, or is of another version, has not answered."""
    answers: dict[str, Erased] = {}
    for data in await bus.ask_all(subject, b"", count=count, timeout=ANSWER_WAIT_S):
        with contextlib.suppress(msgspec.MsgspecError):
            answer = msgspec.json.decode(data, type=Erased)
            answers[answer.instance] = answer
    return answers


# ---------------------------------------------------------------- the files


def scrub(root: Path) -> int:
    """Overwrite and remove every slot under `root` that nobody uses; return how many."""
    return sum(1 for slot in slots(root) if _scrub(slot))


def slots(root: Path) -> Iterator[Path]:
    """Yield the folders of replicas."""
    if root.is_dir():
        yield from sorted(path for path in root.iterdir() if path.is_dir())


def _scrub(slot: Path) -> bool:
    """Remove what is in a slot, unless somebody uses it."""
    with _locked(slot) as is_free:
        if not is_free:
            return False
        for path in sorted(slot.rglob("*")):
            if path.is_file() and not path.is_symlink() and path != slot / LOCK:
                with path.open("r+b") as file:
                    files.overwrite(file.fileno())
                path.unlink(missing_ok=True)
        for folder in [path for path in slot.iterdir() if path.is_dir()]:
            shutil.rmtree(folder)
        return True


@contextlib.contextmanager
def _locked(slot: Path) -> Iterator[bool]:
    """Hold a slot while the block runs, if nobody does."""
    descriptor = os.open(slot / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def owners(database: Path) -> list[str]:
    """Return whose memories a database has, once for each agent; none if it can't be read.

    A replica may be using it.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            return [row[0] for row in db.execute("SELECT owner FROM scopes")]
    except sqlite3.Error:
        return []
