"""Where a browser comes back to from the page of an MCP server.

It comes from there, so without our cookie: what counts is that somebody waits for what it brings.
"""

from __future__ import annotations

import structlog
from fastapi import Request, Response

from ..http.problem import too_many
from ..state.edge import Edge
from .appearance import html

log = structlog.get_logger("vigil.gateway")


async def come_back(edge: Edge, request: Request) -> Response:
    """Take what it brings. Raises: Problem, 429: too much of it isn't known."""
    from vigil.oauth.signing_in import SignInFailed

    address = request.client.host if request.client else ""
    try:
        name = await edge.sign_ins.come_back(request.url.query)
    except SignInFailed as error:
        return html(edge.console, "came_back.html", {"server": "", "why": str(error)}, 422)
    if name is None:
        if wait_s := edge.failures.take(address, edge.clock.monotonic()):
            raise too_many("too many attempts to sign in", wait_s)
        why = "Nobody waits for this sign-in any more; begin it anew."
        return html(edge.console, "came_back.html", {"server": "", "why": why}, 410)
    log.info("signed in to a server", action="gateway.servers", server=name)
    return html(edge.console, "came_back.html", {"server": name, "why": ""})
