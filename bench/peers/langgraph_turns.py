"""LangGraph: a graph of one node on a message list, with a checkpointer, as its documents have it.

A message is an `ainvoke` of the session's thread: the checkpoint is loaded, the message is stored
as input, the node answers, and what it answered is stored. With `sync` each step is stored before
the next begins, which its documents name for high durability; with `exit` once, at the end.

    python -m bench.peers.langgraph_turns DATABASE FIRST SESSIONS MESSAGES IN_FLIGHT sync|exit
"""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import uvloop
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from bench.peers.clients import Load, load_of, run


async def model(state: MessagesState) -> dict[str, Any]:
    """Answer at once, as the stand-in of the other side does."""
    return {"messages": [AIMessage(content=f"answer to: {state['messages'][-1].content}")]}


def saver_of(database: str) -> AbstractAsyncContextManager[Any]:
    """Return the checkpointer of a database; that of SQLite turns on its write-ahead log itself."""
    kind = AsyncPostgresSaver if database.startswith("postgresql:") else AsyncSqliteSaver
    return kind.from_conn_string(database)


async def main(load: Load) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_edge(START, "model")
    graph.add_edge("model", END)
    async with saver_of(load.database) as saver:
        await saver.setup()
        program = graph.compile(checkpointer=saver)

        async def answer(session: str, number: int) -> None:
            config = {"configurable": {"thread_id": session}}
            said = {"messages": [HumanMessage(content=f"message {number}")]}
            await program.ainvoke(said, config, durability=load.variant)

        await run(load, answer)


if __name__ == "__main__":
    uvloop.run(main(load_of(sys.argv[1:])))
