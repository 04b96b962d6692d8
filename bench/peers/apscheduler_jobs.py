"""APScheduler: one-off jobs in a database, all due at once, as its documents have it.

A job that is due is handed to its executor, then removed from the store, and does nothing when it
runs: that it was due is nowhere stored, as it is in Vigil's log. The store of SQLite is given a
write-ahead log, which its default lacks.

    python -m bench.peers.apscheduler_jobs DATABASE COUNT
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import uvloop
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from sqlalchemy import create_engine, event

ADDED_PER_S = 150
"""Jobs that a slow machine stores in a second, at least."""

fired_at: list[float] = []


async def job() -> None:
    fired_at.append(time.time())


def store_of(database: str) -> SQLAlchemyJobStore:
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    if database.startswith("sqlite:"):

        @event.listens_for(engine, "connect")
        def on_connect(connection: Any, _record: Any) -> None:
            connection.execute("PRAGMA journal_mode=WAL")

    return SQLAlchemyJobStore(engine=engine)


async def main(database: str, count: int) -> None:
    scheduler = AsyncIOScheduler(jobstores={"default": store_of(database)}, timezone=UTC)
    scheduler.start()
    due_at = datetime.now(UTC) + timedelta(seconds=2 + count / ADDED_PER_S)
    for number in range(count):
        scheduler.add_job(job, "date", run_date=due_at, id=str(number), misfire_grace_time=None)
    spare_s = (due_at - datetime.now(UTC)).total_seconds()
    if spare_s < 0:
        sys.exit(f"{count} jobs took {-spare_s:.1f} s more than there were to be stored")
    while len(fired_at) < count:
        await asyncio.sleep(0.1)
    per_s = count / (fired_at[-1] - due_at.timestamp())
    scheduler.shutdown()
    print(json.dumps({"per_s": per_s}))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
