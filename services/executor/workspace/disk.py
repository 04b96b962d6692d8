"""Room on the disk: how much a command may take of it, and its end when it has taken more.

No right of ours makes the kernel count a folder's bytes: quotas need an administrator, a file
system in a file needs root. So three things hold together. A command may begin to take half of the
room there is and never more than its workspace's rest, and each of its files no more than that
(RLIMIT_FSIZE, the kernel's). How much it takes is looked at as fast as the disk fills. And some of
the disk is set aside beforehand (:mod:`.reserve`), so that whatever fills the rest, at whatever
pace, messages go on. Who may write no more may still remove: the command runs, and can't write.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import structlog

from vigil.clock import until_next
from vigil.errors import Unavailable
from vigil.settings.config import Settings

from ..sandbox.box import Kind
from ..sandbox.launch.tree import below_of
from .reserve import Reserve
from .usage import FolderUsage, free_bytes, nameless_bytes, usage_of

log = structlog.get_logger("vigil.executor")

ROOM: Final = 4
"""Commands end at so many times the room at which the gateway takes no messages any more: what one
person's command has filled the disk with stays there, and must not keep the others out."""
RESERVES: Final = 2
"""What is set aside, in the same unit."""
ROOM_BYTES_MIN: Final = 16 * 1024**2
"""Above the room where commands end: with less, none begins to write."""
SLACK_BYTES: Final = 256 * 1024
"""What a command may take that may not write: folders and links take some, too."""
SLACK_FILES: Final = 100
COMMAND_S: Final = (0.05, 1.0)
"""How often a command is thought of, and how often at least its files are counted..."""
SERVER_S: Final = (1.0, 60.0)
"""...and the same of a server, which mostly waits."""
SHARE_OF_TIME: Final = 20
"""They are counted for a 20th of the time at most."""
STEPS: Final = 8
"""They are counted at once when the disk has lost that part of what the command may take."""
STEP_BYTES_MIN: Final = 64 * 1024
FILL_BYTES_PER_S: Final = 8 * 1024**3
"""Faster than a machine fills its page cache: so often the disk has to be looked at."""
PAUSE_S: Final = (0.002, 0.1)
KEEP_S: Final = 5.0
"""How often the reserve is thought of: a command that fills the disk has a guard of its own."""

NO_ROOM: Final = "the disk was almost full"
TOO_MUCH: Final = "its workspace may hold {limit} bytes"
TOO_MANY: Final = "its workspace may hold {limit} files, in folders not too deep"


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What a command may take."""

    bytes_left: int
    files_left: int
    usage: FolderUsage
    """What was there before."""
    limit: str
    """What stands in its way first, in words."""
    why_not: str = ""
    """Why it may not write at all; empty: it may."""


def allowance_of(
    usage: FolderUsage, free: int, *, free_min: int, bytes_max: int, files_max: int
) -> Allowance:
    """Decide what a command may take. Pure.

    >>> limits = {"free_min": 0, "bytes_max": 2**30, "files_max": 9}
    >>> allowance_of(FolderUsage(bytes_used=2**29, files=1), 2**40, **limits).bytes_left == 2**29
    True
    >>> allowance_of(FolderUsage(bytes_used=2**30, files=1), 2**40, **limits).why_not
    'its workspace may hold 1073741824 bytes'
    """
    too_much, too_many = TOO_MUCH.format(limit=bytes_max), TOO_MANY.format(limit=files_max)
    quota, disk = bytes_max - usage.bytes_used, (free - free_min) // 2
    why_not = ""
    if disk < ROOM_BYTES_MIN // 2:
        why_not = NO_ROOM
    elif quota <= 0:
        why_not = too_much
    elif usage.files >= files_max:
        why_not = too_many
    return Allowance(
        bytes_left=SLACK_BYTES if why_not else min(quota, disk),
        files_left=SLACK_FILES if why_not else files_max - usage.files,
        usage=usage,
        limit=why_not or (too_much if quota <= disk else NO_ROOM),
        why_not=why_not,
    )


def pause_s(disk: int) -> float:
    """Return how soon to look again at a disk with so many bytes to lose. Pure.

    >>> pause_s(0), pause_s(2**40)
    (0.002, 0.1)
    """
    shortest, longest = PAUSE_S
    return min(longest, max(shortest, disk / FILL_BYTES_PER_S))


class Floor:
    """Ends what writes when the disk is almost full, within milliseconds.

    It has a thread of its own while there is something to end: the event loop may be late.

    Args:
        free_min: in bytes; below it everything is ended.
        spend: called below `spend_at`; must not block for long.
    """

    def __init__(
        self, folder: Path, free_min: int, *, spend_at: int, spend: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._free_min = free_min
        self._spend_at = spend_at
        self._spend = spend
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def guarding(self, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` from another thread, once and again, while the disk is almost full; never
        after this was left."""
        with self._lock:
            self._ends.append(end)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="disk", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)

    def _run(self) -> None:
        while True:
            disk = self._measure()
            with self._lock:
                if not self._ends:
                    self._thread = None
                    return
                for end in self._ends if disk < 0 else ():
                    end()
            time.sleep(pause_s(disk))

    def _measure(self) -> int:
        """Return how much may be lost until everything is ended."""
        try:
            free = free_bytes(self._folder)
        except OSError:
            return 0  # it is just being made, or removed
        if free < self._spend_at:
            self._spend()
        return free - self._free_min


class Disk:
    """The disk on which the workspaces are."""

    def __init__(self, settings: Settings) -> None:
        config = settings.config
        unit = config.gateway.disk_free_bytes_min
        self._root = settings.workspaces
        self._unit = unit
        self.free_min = ROOM * unit
        self._bytes_max = config.executor.workspace_bytes_max
        self._files_max = config.executor.workspace_files_max
        self._reserve = Reserve(settings.home / "reserve", RESERVES * unit)
        self._floor = Floor(self._root, self.free_min, spend_at=unit, spend=self._reserve.spend)

    def allowance(self, folder: Path) -> Allowance:
        """Tell what may be written to a folder of commands. Blocks.

        Raises: Unavailable, it can't be read.
        """
        try:
            usage, free = usage_of(folder, files_max=self._files_max), free_bytes(folder)
        except OSError as error:
            raise Unavailable(f"the workspace can't be read: {error.strerror}") from error
        return allowance_of(
            usage,
            free,
            free_min=self.free_min,
            bytes_max=self._bytes_max,
            files_max=self._files_max,
        )

    def guard(
        self,
        folder: Path,
        allowance: Allowance,
        kind: Kind,
        every_s: tuple[float, float] = COMMAND_S,
    ) -> Guard:
        """Return what looks after a command that may take that."""
        return Guard(self._floor, folder, allowance, kind, self._files_max, every_s)

    async def run(self, tell: dict[str, str]) -> None:
        """Keep the reserve, and tell under ``disk`` when there is no room, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.to_thread(self._keep, tell)
            await asyncio.sleep(until_next(KEEP_S, loop.time()))

    def _keep(self, tell: dict[str, str]) -> None:
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            free = free_bytes(self._root)
        except OSError:
            return
        if free < self._unit:
            self._reserve.spend()
        elif free - self._reserve.size > self.free_min + ROOM_BYTES_MIN:
            self._reserve.keep()
        if free < self.free_min + ROOM_BYTES_MIN:
            tell["disk"] = f"{free} bytes free on the disk: commands can remove files and not write"
        else:
            tell.pop("disk", None)


class Guard:
    """Looks after one command. :meth:`watch` may be awaited once.

    Args:
        kind: of its sandbox; by what ends it.
        every_s: how often it is thought of, and its files are counted.
    """

    def __init__(
        self,
        floor: Floor,
        folder: Path,
        allowance: Allowance,
        kind: Kind,
        files_max: int,
        every_s: tuple[float, float],
    ) -> None:
        self._floor = floor
        self._folder = folder
        self._allowance = allowance
        self._signal = signal.SIGKILL if kind == "bubblewrap" else signal.SIGTERM
        self._files_max = files_max
        self._every_s = every_s
        self.why = ""
        """Why it had to end; empty: it had not."""

    async def watch(self, pid: int) -> str:
        """Wait until the command has taken too much, and return why it ends.

        Args:
            pid: of the outermost process of its sandbox, which nobody has taken leave of.
        """
        full = asyncio.Event()
        loop = asyncio.get_running_loop()
        try:
            opened = os.pidfd_open(pid)
        except OSError:
            opened = None  # it has ended; or the kernel is old, and the event loop has to do

        def end() -> None:
            if not self.why:
                self.why = NO_ROOM
                loop.call_soon_threadsafe(full.set)
            if opened is not None:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(opened, self._signal)

        measures = asyncio.ensure_future(self._measure_on(pid))
        waiting = asyncio.ensure_future(full.wait())
        guarding = (
            contextlib.nullcontext() if self._allowance.why_not else self._floor.guarding(end)
        )
        try:
            with guarding:
                await asyncio.wait((measures, waiting), return_when=asyncio.FIRST_COMPLETED)
            if measures.done():
                measures.result()  # a bug there must not look like an end
        finally:
            measures.cancel()
            waiting.cancel()
            if opened is not None:
                os.close(opened)
        return self.why

    async def _measure_on(self, pid: int) -> None:
        """Measure until it has taken too much."""
        loop = asyncio.get_running_loop()
        step = max(STEP_BYTES_MIN, self._allowance.bytes_left // STEPS)
        glance_s, measure_s = self._every_s
        seen, next_s = self._free(0), loop.time() + measure_s
        while not self.why:
            await asyncio.sleep(glance_s)
            free = self._free(seen)
            if seen - free < step and loop.time() < next_s:
                seen = max(seen, free)
                continue
            seen, begun_s = free, loop.time()
            found = await asyncio.to_thread(self._measure, pid)
            self.why = self.why or found  # the disk may have been full meanwhile
            ended_s = loop.time()
            next_s = ended_s + max(measure_s, SHARE_OF_TIME * (ended_s - begun_s))

    def _free(self, otherwise: int) -> int:
        """Return what is free; `otherwise`, if nobody can tell, since the folder is gone, say."""
        try:
            return free_bytes(self._folder)
        except OSError:
            return otherwise

    def _measure(self, pid: int) -> str:
        """Return why it has to end; empty: it may go on. Blocks."""
        before = self._allowance.usage
        try:
            now = usage_of(self._folder, files_max=self._files_max + SLACK_FILES)
        except OSError:
            return ""
        if now.files - before.files > self._allowance.files_left:
            return TOO_MANY.format(limit=self._files_max)
        left = self._allowance.bytes_left - (now.bytes_used - before.bytes_used)
        if left >= 0:
            left -= nameless_bytes(below_of(pid), self._folder)
        return self._allowance.limit if left < 0 else ""
