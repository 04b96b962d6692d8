"""`vigil acp`: for an editor to start."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

from vigil.distribution import command_for
from vigil.errors import ConfigError
from vigil.sdk.client import Client
from vigil.subjects import SessionKey

from .. import options
from ..admin.backup import quiet

MISSING: Final = f"this needs the Agent Client Protocol: {command_for('acp')}"


def acp(agent: options.Agent = "vigil") -> None:
    """Serve an agent on stdin and stdout, for an editor that speaks the Agent Client Protocol.

    It acts with the token of this home, or VIGIL_TOKEN; Vigil has to run. stdin's end ends it.
    """
    quiet()
    try:
        from .agent import EditorAgent
    except ModuleNotFoundError as error:
        raise ConfigError(MISSING) from error
    client = options.client()
    key = options.session_of(client, agent, None)
    print(f"vigil: serving {agent} for {client.url}; stdin's end ends it", file=sys.stderr)
    asyncio.run(_serve(EditorAgent, client, key))


async def _serve(kind: Any, client: Client, key: SessionKey) -> None:
    from acp import run_agent

    agent = kind(client, key.agent, key.user)
    try:
        await run_agent(agent)
    finally:
        await agent.close()
