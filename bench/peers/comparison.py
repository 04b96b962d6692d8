"""LangGraph, DBOS and APScheduler at the same work as Vigil, in rounds in turn with it.

The work is that of the part `turns`: a message comes in, a stand-in for a model answers at once,
and message, answer and state are stored and synced; 100 sessions, each at its 20 next messages.
Vigil is measured over HTTP and WebSocket by a process of its own. A peer is called in its own
process and delivers nothing, so it does less; it has the concurrency that was fastest in a trial
before the rounds, of one or two processes with few or all sessions in flight.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import timers
from bench.numbers import percentile, report_rounds
from bench.peers import postgres
from bench.turns import MESSAGES, SESSIONS, talked
from tests.support.stack import running_stack

PYTHON: Final = Path(sys.prefix) / "peers" / "bin" / "python"
"""Of the peers' virtual environment; `make bench ARGS=peers` makes it."""
TIMERS: Final = 1_000
TRIAL_MESSAGES: Final = 3


class Concurrency(NamedTuple):
    processes: int
    in_flight: int
    """Messages that a process answers at once, at most."""


TRIED: Final = tuple(Concurrency(p, i) for p in (1, 2) for i in (8, SESSIONS // p))


class Peer(NamedTuple):
    """A program, with one store and one degree of durability."""

    name: str
    program: str
    variant: str
    is_on_postgres: bool
    ratio: str = ""
    """What Vigil's figure over this one is called, if it's told."""

    @property
    def kind(self) -> str:
        """The name, whatever the durability."""
        return self.name.removesuffix("_exit")


PEERS: Final = (
    Peer("langgraph_sqlite", "langgraph_turns", "sync", False, "turns_vs_langgraph_sqlite"),
    Peer("langgraph_sqlite_exit", "langgraph_turns", "exit", False),
    Peer("langgraph_postgres", "langgraph_turns", "sync", True, "turns_vs_langgraph_postgres"),
    Peer("langgraph_postgres_exit", "langgraph_turns", "exit", True),
    Peer("dbos_postgres", "dbos_turns", "workflow", True, "turns_vs_dbos_postgres"),
)


class Databases:
    """Empty databases, one for each run."""

    def __init__(self, home: Path, server: postgres.Postgres | None) -> None:
        self._home = home
        self.server = server
        self._count = 0

    def new(self, is_on_postgres: bool) -> str:
        """Return a path, or a URL of Postgres."""
        self._count += 1
        name = f"peer{self._count}"
        if is_on_postgres:
            assert self.server is not None
            return self.server.create(name)
        return str(self._home / f"{name}.sqlite")


async def measure(home: Path, rounds: int) -> None:
    """Report the peers' figures, and Vigil's of the same rounds over them."""
    check_installed()
    with contextlib.ExitStack() as stack:
        programs = postgres.find()
        server = None if programs is None else stack.enter_context(postgres.running(programs))
        if server is None:
            print("no initdb on the PATH: what needs Postgres is left out", file=sys.stderr)
        await _measure(home, rounds, Databases(home, server))


def check_installed() -> None:
    """End the program if there is nothing to compare with. Raises: SystemExit."""
    if not PYTHON.exists():
        sys.exit(f"there is no {PYTHON}: use make bench ARGS=peers")


async def _measure(home: Path, rounds: int, databases: Databases) -> None:
    peers = [one for one in PEERS if databases.server or not one.is_on_postgres]
    chosen: dict[str, Concurrency] = {}
    for peer in peers:
        if peer.variant != "exit":  # which waits for less, in the same places
            chosen[peer.kind] = await _fastest(peer, databases)
    ours: list[float] = []
    theirs: dict[Peer, list[float]] = {peer: [] for peer in peers}
    late_ms: dict[Peer, list[float]] = {peer: [] for peer in peers}
    for number in range(rounds):
        ours.append((await talked(home / f"vigil-{number}", "always"))[0]["per_s"])
        for peer in peers:
            per_s, late = await _run(peer, chosen[peer.kind], databases, MESSAGES)
            theirs[peer].append(per_s)
            late_ms[peer].append(percentile(late, 50))
    report_rounds("peers_vigil_per_s", ours, "1/s", sessions=SESSIONS, messages=MESSAGES)
    for peer in peers:
        more = {"variant": peer.variant, **chosen[peer.kind]._asdict()}
        report_rounds(f"{peer.name}_per_s", theirs[peer], "1/s", **more)
        report_rounds(f"{peer.name}_p50_ms", late_ms[peer], "ms")
        if peer.ratio:
            report_rounds(peer.ratio, _over(ours, theirs[peer]), "ratio")
    await _measure_timers(home, rounds, databases)


def _over(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(ours, theirs, strict=True)]


async def _fastest(peer: Peer, databases: Databases) -> Concurrency:
    """Try each concurrency for a few messages; one that fails (a locked database) doesn't count."""
    found: dict[Concurrency, float] = {}
    for one in TRIED:
        try:
            found[one], _ = await _run(peer, one, databases, TRIAL_MESSAGES)
        except RuntimeError as error:
            print(f"{peer.name}: {one}: {error}", file=sys.stderr)
    return max(found, key=lambda one: found[one])


async def _run(
    peer: Peer, concurrency: Concurrency, databases: Databases, messages: int
) -> tuple[float, list[float]]:
    """Let all sessions speak -> (messages a second, how long each took in ms).

    Raises:
        RuntimeError: a process failed.
    """
    database = databases.new(peer.is_on_postgres)
    share = SESSIONS // concurrency.processes
    processes = []
    for number in range(concurrency.processes):
        load = (database, number * share, share, messages, concurrency.in_flight, peer.variant)
        processes.append(await _start(peer.program, *load))
        await _opened(processes[-1])  # the first one makes the tables
    outputs = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    if any(process.returncode for process in processes):
        raise RuntimeError(outputs[0][1].decode(errors="replace")[-2000:])
    found = [json.loads(output) for output, _ in outputs]
    elapsed_s = max(f["ended_at"] for f in found) - min(f["begun_at"] for f in found)
    return SESSIONS * messages / elapsed_s, [late for f in found for late in f["late_ms"]]


async def _start(program: str, *arguments: object) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        str(PYTHON), "-m", f"bench.peers.{program}", *map(str, arguments),
        stdin=pipe, stdout=pipe, stderr=pipe, limit=2**24,
    )  # fmt: skip


async def _opened(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    if await process.stdout.readline() != b"ready\n":
        _, errors = await process.communicate()
        raise RuntimeError(errors.decode(errors="replace")[-2000:])


async def _measure_timers(home: Path, rounds: int, databases: Databases) -> None:
    """Report timers due at once, a second: Vigil's scheduler alone, and APScheduler's jobs."""
    stores = ["sqlite", *(["postgres"] if databases.server else [])]
    ours: list[float] = []
    theirs: dict[str, list[float]] = {store: [] for store in stores}
    for number in range(rounds):
        folder = home / f"timers-{number}"
        folder.mkdir()
        async with running_stack(folder, services=("scheduler",)) as stack:
            ours.append((await timers.measure(stack, TIMERS, 0.0))["per_s"])
        for store in stores:
            database = databases.new(store == "postgres")
            url = database if store == "postgres" else f"sqlite:///{database}"
            process = await _start("apscheduler_jobs", url, TIMERS)
            output, errors = await process.communicate()
            if process.returncode != 0:
                raise RuntimeError(errors.decode(errors="replace")[-2000:])
            theirs[store].append(json.loads(output)["per_s"])
    report_rounds("peers_vigil_timers_per_s", ours, "1/s", timers=TIMERS)
    for store in stores:
        report_rounds(f"apscheduler_{store}_per_s", theirs[store], "1/s")
        report_rounds(f"timers_vs_apscheduler_{store}", _over(ours, theirs[store]), "ratio")
