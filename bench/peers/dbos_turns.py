"""DBOS: a workflow of one step for each message, in Postgres, as its documents have it.

The message is the workflow's stored input, the stand-in's answer the step's stored output, and what
the workflow returns the stored answer. The session's earlier messages are left in memory: less than
the others do.

    python -m bench.peers.dbos_turns DATABASE FIRST SESSIONS MESSAGES IN_FLIGHT workflow
"""

from __future__ import annotations

import sys

import uvloop
from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench.peers.clients import Load, load_of, run


@DBOS.step()
async def model(text: str) -> str:
    """Answer at once, as the stand-in of the other side does."""
    return f"answer to: {text}"


@DBOS.workflow()
async def converse(session: str, text: str) -> str:
    return await model(text)


async def main(load: Load) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": load.database,
        "executor_id": str(load.first),
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()

    async def answer(session: str, number: int) -> None:
        with SetWorkflowID(f"{session}-{number}"):
            await converse(session, f"message {number}")

    try:
        await run(load, answer)
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    uvloop.run(main(load_of(sys.argv[1:])))
