"""`make bench`: figures in one run, one JSON object a line, most telling as ratios.

python -m bench [--rounds N] [PART ...]    --help names the parts

What is compared runs in turn, several rounds of it: the figure is the median round, with the least
and the most beside it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import uvloop

from bench import (
    adapters,
    ageing,
    attacks,
    before,
    budget,
    caching,
    calendars,
    chats,
    console,
    errands,
    grants,
    grouped,
    groupings,
    homes,
    letters,
    mail_channel,
    mailboxes,
    memory_speed,
    mind,
    month,
    neighbours,
    networks,
    partitions,
    quiet,
    replaying,
    resting,
    retrieval,
    shares,
    signals,
    slots,
    starting,
    system,
    timers,
    tools,
    tracing,
    turns,
    upkeep,
    voiding,
    watching,
)
from bench.growth import crowd, length, log, people, replicas, rest, restart, sockets, table
from bench.numbers import report
from bench.peers import comparison
from tests.support.stack import running_stack
from vigil.observe import logs


async def measure_timers(home: Path) -> None:
    """Lateness of timers: from due to `in.timer` stored, the scheduler alone."""
    runs = (("1k", 1_000, 10.0), ("10k", 10_000, 10.0), ("burst", 1_000, 0.0))
    for name, count, window_s in runs:
        folder = home / name
        folder.mkdir()
        async with running_stack(folder, services=("scheduler",)) as stack:
            found = await timers.measure(stack, count, window_s)
        if name == "burst":
            report("timer_burst_per_s", found["per_s"], "1/s", aim=">= 500", early=found["early"])
            continue
        if name == "1k":
            report("timer_1k_p50_ms", found["p50_ms"], "ms", aim="< 10")
        aim = "< 50" if name == "1k" else "< 300"
        report(f"timer_{name}_p99_ms", found["p99_ms"], "ms", aim=aim, early=found["early"])


async def measure_voiding(home: Path) -> None:
    """Acceptance of a user message -> follow-ups void."""
    async with system.running(home) as running:
        found = await voiding.measure(running)
    report("void_p50_ms", found["p50_ms"], "ms")
    report("void_p99_ms", found["p99_ms"], "ms", aim="< 100")


async def measure_tools(home: Path) -> None:
    """What a call costs beside its tool, fifty workers at once, a start in the sandbox."""
    found = await tools.overhead(home / "calls")
    report("tool_overhead_p50_ms", found.p50_ms, "ms", calls=tools.LOOPS * tools.CALLS)
    report("tool_overhead_p99_ms", found.p99_ms, "ms")
    report("tool_overhead_vs_floor1", found.p50_ms / found.floor_p50_ms, "ratio")
    report("workers50_s", await tools.workers(home / "workers"), "s", workers=tools.WORKERS)
    started = await tools.sandbox_start()
    report("sandbox_start_ms", started.p50_ms, "ms", sandbox=started.kind,
           bare_ms=round(started.bare_p50_ms, 3))  # fmt: skip


async def measure_resting(home: Path) -> None:
    """Idle cost of everything, and of 1,000 sessions, all of one person."""
    async with system.running(home, VIGIL_GATEWAY__PERSON_BACKLOG_MAX="5000") as running:
        found = await resting.idle(running)
        report("idle_cpu_pct", found["cpu_pct"], "% of a core", aim="< 1")
        report("idle_rss_mb", found["rss_mb"], "MiB", aim="< 400")
        more = await resting.per_1000_sessions(running)
        report("open_1000_sessions_mb", more["open_mb"], "MiB")
        report("rest_1000_sessions_mb", more["at_rest_mb"], "MiB")


async def measure_signals(home: Path) -> None:
    """Signals under the turn load, and one gateway with 200 readers of them."""
    async with system.running(home) as running:
        await running.talk(turns.SESSIONS, turns.MESSAGES, "signals")
        found = await signals.lag(running)
        report("signal_lag_p50_ms", found["p50_ms"], "ms", signals=int(found["count"]))
        report("signal_lag_p99_ms", found["p99_ms"], "ms", aim="< 500")
        handed_out = await signals.fan_out(running)
        report("sse_fanout_per_s", handed_out["per_s"], "1/s", readers=signals.READERS)


async def measure_neighbours(home: Path) -> None:
    """A quiet person beside one who attacks, with the limits that the system ships with."""
    settings = {**neighbours.SETTINGS, **attacks.SETTINGS}
    async with system.running(home, files=neighbours.FILES, **settings) as running:
        await neighbours.measure(running)


PARTS: dict[str, Callable[[Path], Awaitable[None]]] = {
    "timers": measure_timers,
    "voiding": measure_voiding,
    "tools": measure_tools,
    "signals": measure_signals,
    "retrieval": retrieval.measure,
    "memory": memory_speed.measure,
    "upkeep": upkeep.measure,
    "ageing": ageing.measure,
    "resting": measure_resting,
    "neighbours": measure_neighbours,
    "shares": shares.measure,
    "grants": grants.measure,
    "letters": letters.measure,
    "mailboxes": mailboxes.measure,
    "mail_channel": mail_channel.measure,
    "chats": chats.measure,
    "networks": networks.measure,
    "homes": homes.measure,
    "caching": caching.measure,
    "budget": budget.measure,
    "adapters": adapters.measure,
    "replaying": replaying.measure,
    "watching": watching.measure,
    "slots": slots.measure,
    "month": month.measure,
    "mind": mind.measure,
    "console": console.measure,
    "errands": errands.measure,
    "quiet": quiet.measure,
    "calendars": calendars.measure,
}
IN_ROUNDS: dict[str, Callable[[Path, int], Awaitable[None]]] = {
    "turns": turns.measure,
    "partitions_gain": partitions.measure,
    "partitions_cluster": partitions.measure_cluster,
    "groupings": groupings.measure,
    "grouped": grouped.measure,
    "tracing": tracing.measure,
    "peers": comparison.measure,
    "growth": table.measure,
    "session_20k_turn_ratio": length.measure,
    "rest_200k_turn_ratio": rest.measure,
    "restart_1gib_s": restart.measure,
    "sockets_2000_mb": sockets.measure,
    "starting": starting.measure,
    "before": before.measure,
    "messages": before.measure_messages,
}
"""Parts that compare, and how often is to be chosen."""
OF_SIZES: dict[str, Callable[..., Awaitable[None]]] = {
    "crowd": crowd.measure,
    "log": log.measure,
    "people": people.measure,
    "replicas": replicas.measure,
}
"""Parts that tell a curve, whose sizes are to be chosen: sockets, records, memories, replicas."""
IN_ROUNDS |= OF_SIZES
ON_REQUEST = {
    *OF_SIZES,
    "grouped",
    "peers",
    "growth",
    "partitions_cluster",
    "month",
    "upkeep",
    "errands",
    "starting",
    "before",
    "messages",
}
"""Parts that only run when they are named: they need more, or take long."""

WITH_COMMIT = ("errands", "starting", "before", "messages")
"""Parts that compare with an older commit, which may be another."""


async def main(names: list[str], rounds: int) -> None:
    logs.configure(level=40)
    for name in names or [one for one in (*IN_ROUNDS, *PARTS) if one not in ON_REQUEST]:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            await (IN_ROUNDS[name](home, rounds) if name in IN_ROUNDS else PARTS[name](home))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 100), metavar="N")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join([*IN_ROUNDS, *PARTS])}; "
        f"by default all but {', '.join(sorted(ON_REQUEST))}",
    )  # fmt: skip
    parser.add_argument(
        "--before",
        metavar="COMMIT",
        help="of `errands`: do them in the console of that commit; of `starting`, `before` and "
        "`messages`: compare with it",
    )
    parser.add_argument(
        "--sizes", nargs="+", type=int, metavar="N",
        help=f"of {', '.join(OF_SIZES)}: how many sockets, records, memories or replicas",
    )  # fmt: skip
    arguments = parser.parse_args()
    if arguments.sizes and (len(arguments.parts) != 1 or arguments.parts[0] not in OF_SIZES):
        parser.error(f"--sizes is of one of {', '.join(OF_SIZES)}")
    if arguments.before and (len(arguments.parts) != 1 or arguments.parts[0] not in WITH_COMMIT):
        parser.error(f"--before is of one of {', '.join(WITH_COMMIT)}")
    if unknown := set(arguments.parts) - IN_ROUNDS.keys() - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    return arguments


if __name__ == "__main__":
    chosen = _arguments()
    if chosen.before:
        PARTS["errands"] = partial(errands.measure_before, commit=chosen.before)
        IN_ROUNDS["starting"] = partial(starting.measure, commit=chosen.before)
        IN_ROUNDS["before"] = partial(before.measure, commit=chosen.before)
        IN_ROUNDS["messages"] = partial(before.measure_messages, commit=chosen.before)
    if chosen.sizes:
        part = chosen.parts[0]
        IN_ROUNDS[part] = partial(OF_SIZES[part], sizes=chosen.sizes)
    uvloop.run(main(chosen.parts, chosen.rounds))
