"""`vigil mcp`: a memory for programs that speak the Model Context Protocol, on stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from vigil.errors import ConfigError, VigilError
from vigil.subjects import check_part

from . import memory, options
from .keeping import quiet


def mcp(agent: memory.Agent = "vigil", user: memory.User = None) -> None:
    """Serve a memory as an MCP server on stdin and stdout, for another program to start.

    It acts with the token of this home, or VIGIL_TOKEN. Vigil need not run yet when it starts. At
    /mcp the gateway serves the same over HTTP.
    """
    check_part("agent", agent)
    if user is not None:
        check_part("user", user)
    quiet()
    try:
        from vigil.memory import mcp_server
    except ModuleNotFoundError as error:
        raise ConfigError(f"this needs {error.name}: pip install vigil[gateway]") from error
    from vigil.memory.mcp_tools import Acting
    from vigil.memory.over_http import MemoriesOverHttp
    from vigil.memory.wire import Whose

    _, client = options.here()
    acting = Acting(MemoriesOverHttp(client), Whose(user_id=user, agent_id=agent))

    def explain(error: Exception) -> str | None:
        return str(error) if isinstance(error, VigilError) else None

    def find(_: Any) -> Acting:
        return acting

    print(f"vigil: serving MCP for {client.url}; stdin's end ends it", file=sys.stderr)
    asyncio.run(mcp_server.serve_stdio(mcp_server.build(find, explain)))
