"""Group commit, on the floor: does it pay if what waits goes to the broker as one atomic batch?

The floor of :mod:`bench.floor` (three acknowledged publishes and two pulls a message), in turn with
the same whose three ends send what gathers while their last batch is under way as one batch, or
one by one where fewer than `BATCH_MIN` wait. No session has two records under way, so none of the
rules that a real committer would have to keep stands in its way: it is the most that can be won.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from pathlib import Path
from typing import Any, Final

from bench import floor
from bench.numbers import report_rounds
from vigil.settings.sections import Nats

SESSIONS: Final = (25, 100, 400)
MESSAGES: Final = {25: 40, 100: 20, 400: 8}
BATCH_MIN: Final = 15
"""Below it singles are sooner, with a sync for each (2026-11, docs/measured.md)."""
BATCH_MAX: Final = 500


class GroupedEnd(floor.End):
    """Sends what waits together."""

    _queue: list[tuple[str, bytes, asyncio.Future[dict[str, Any]]]]
    _is_under_way = False
    _numbers = itertools.count()

    async def ask(self, subject: str, data: bytes) -> dict[str, Any]:
        if not subject.startswith("floor."):
            return await super().ask(subject, data)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        queue = self.__dict__.setdefault("_queue", [])
        queue.append((subject, data, future))
        if not self._is_under_way:
            self._is_under_way = True
            self._sending = asyncio.create_task(self._send())
        return await future

    async def _send(self) -> None:
        await asyncio.sleep(0)  # what came in the same look at the socket goes together
        while waiting := self._queue[:BATCH_MAX]:
            del self._queue[: len(waiting)]
            if len(waiting) < BATCH_MIN:
                await asyncio.gather(*(self._alone(*one) for one in waiting))
            else:
                await self._together(waiting)
        self._is_under_way = False

    async def _alone(
        self, subject: str, data: bytes, future: asyncio.Future[dict[str, Any]]
    ) -> None:
        future.set_result(await super().ask(subject, data))

    async def _together(
        self, waiting: list[tuple[str, bytes, asyncio.Future[dict[str, Any]]]]
    ) -> None:
        batch = uuid.uuid4().hex
        for number, (subject, data, _) in enumerate(waiting[:-1], 1):
            headers = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
            await self._client.publish(subject, data, headers=headers)
        subject, data, _ = waiting[-1]
        last = {"Nats-Batch-Sequence": str(len(waiting)), "Nats-Batch-Commit": "1"}
        answer = await self.ask_with(subject, data, {"Nats-Batch-Id": batch, **last})
        for _, _, future in waiting:
            future.set_result(answer)


async def measure(home: Path, rounds: int) -> None:
    """Report messages a second of both, and their ratio, by how many sessions talk."""
    for sync in ("always", "default"):
        nats = Nats(sync=sync)
        for sessions in SESSIONS:
            found: list[tuple[float, float]] = []
            for number in range(rounds):
                places = [home / f"{sync}-{sessions}-{number}-{kind}" for kind in "ab"]
                ends = (floor.End, GroupedEnd)
                order = (0, 1) if number % 2 == 0 else (1, 0)
                per_s = {
                    one: (
                        await floor.measure(
                            places[one], nats, sessions=sessions, messages=MESSAGES[sessions],
                            end=ends[one],
                        )
                    )["per_s"]
                    for one in order
                }  # fmt: skip
                found.append((per_s[0], per_s[1]))
            facts = {"sessions": sessions, "sync": sync}
            report_rounds("floor_singles_per_s", [one for one, _ in found], "1/s", **facts)
            report_rounds("floor_grouped_per_s", [one for _, one in found], "1/s", **facts)
            report_rounds("grouped_vs_singles", [b / a for a, b in found], "ratio", **facts)
