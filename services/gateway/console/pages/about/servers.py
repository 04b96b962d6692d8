"""MCP servers and others' agents: how each is, what it sees and what it offers; found in a
catalogue, added, tried, switched, removed."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any, Final, get_args

from markupsafe import escape

from vigil.local.mcp_servers import needs_network

from ....http.problem import Problem
from ....servers.endpoint import Risk, ServerList, ServerView
from ....work.tools import ToolList
from ...second_thoughts import Confirmation, with_undo
from ...text import clip, visible
from ...visit import Visit, segment_of
from . import catalogue

PATH: Final = "/api/servers"
RISKS: Final[tuple[str, ...]] = get_args(Risk)
TRIED_S: Final = 12.0
"""For how long what was started is waited for."""
POLL_S: Final = 0.25
_BEGINNING: Final = "not connected yet"
"""What is said of one that is only just started."""


async def show(visit: Visit) -> dict[str, Any]:
    if not visit.reader.is_admin:
        return {"servers": None, "words": ""}
    found, tools, searched = await asyncio.gather(
        visit.api.get(ServerList, PATH),
        visit.api.get(ToolList, "/api/tools"),
        catalogue.searched(visit),
    )
    return {
        **searched,
        "proposed_name": catalogue.proposed_name,
        "as_line": shlex.join,
        "servers": found.servers,
        "tried": visit.query.get("tried", ""),
        "sign_in": None,
        "risks": RISKS,
        "risk_of": {tool.name: tool.risk for one in tools.sources for tool in one.tools},
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before something is started, or taken out with what was approved of it, or signed out."""
    match visit.wanted("do"):
        case "add":
            body = _wanted(visit)
            if body["speaks"] == "a2a":
                return Confirmation(
                    title=f"Ask the agent {body['name']} from now on?",
                    text="Your agents may call its skills at once. Whatever they tell it leaves "
                    "this machine; what it answers counts as from outside.",
                    yes="Ask it",
                    exact=(escape(visible(clip(body["url"]))),),
                )
            what = shlex.join(body["command"]) if body["command"] else body["url"]
            fixed = [f"{key}={value}" for key, value in (body["env"] | body["headers"]).items()]
            sees = [f"folders {', '.join(body['folders'])}"] if body["folders"] else []
            sees += ["the network"] if body["network"] or body["url"] else []
            also = f", and {' and '.join(sees)}" if sees else ", and nothing else"
            fetches = body["command"] and needs_network(body["command"][0], network=body["network"])
            hint = (
                " It fetches the program that it runs, which needs the network." if fetches else ""
            )
            return Confirmation(
                title=f"Start the server {body['name']}?",
                text="Its tools are offered to agents at once. It sees the arguments of their "
                f"calls{also}.{hint}",
                yes="Start it",
                exact=tuple(escape(visible(clip(one))) for one in (what, *fixed)),
            )
        case "remove":
            return Confirmation(
                title=f"Remove the server {visit.wanted('name')}?",
                text="Its tools go, and what was approved of them is forgotten. Switching it off "
                "can be undone.",
                yes="Remove it",
            )
        case "sign-out":
            return Confirmation(
                title=f"Sign out of {visit.wanted('name')}?",
                text="Its tokens are taken back, and its tools fail until somebody signs in again.",
                yes="Sign out",
            )
    return None


async def act(visit: Visit) -> str | dict[str, Any]:
    """Add a server and wait until it's known whether it works; try it anew, switch or remove it."""
    do, name = visit.wanted("do"), visit.wanted("name").strip()
    path = f"{PATH}/{segment_of(name)}"
    match do:
        case "add":
            await visit.api.send("POST", PATH, _wanted(visit))
            await _until(visit, name, _is_settled)
            return f"/servers?tried={name}"
        case "try":
            there = {one.name: one for one in (await visit.api.get(ServerList, PATH)).servers}
            if name in there and there[name].state == "off":  # by somebody, since this was shown
                raise Problem(409, f"{name} is switched off by now; switch it on to try it")
            await visit.api.send("PATCH", path, {"is_enabled": False})
            try:
                await _until(visit, name, lambda one: not one.tools and not one.problem)
            finally:  # whatever becomes of this page
                await visit.api.send("PATCH", path, {"is_enabled": True})
            await _until(visit, name, _is_settled)
            return f"/servers?tried={name}"
        case "on" | "off":
            await visit.api.send("PATCH", path, {"is_enabled": do == "on"})
            return with_undo("/servers", f"server/{name}/{'off' if do == 'on' else 'on'}")
        case "sign-in":
            begun = await visit.api.send("POST", f"{path}/sign-in", {"gateway": visit.gateway})
            # A link and no way that leads there by itself: forms lead to pages of ours alone.
            return {"sign_in": {"name": name, "link": begun["link"]}}
        case "sign-out":
            await visit.api.send("DELETE", f"{path}/sign-in")
            return "/servers"
        case "remove":
            await visit.api.send("DELETE", path)
            return "/servers"
    raise Problem(422, "nothing here does that", field="do")


def _wanted(visit: Visit) -> dict[str, Any]:
    """Return what a form says of a new server. Raises: Problem, 422."""
    visit.wanted("name")
    given = {
        name: visit.form.get(name, "").strip()
        for name in ("name", "command", "url", "token", "folders")
    }
    try:
        command, folders = shlex.split(given["command"]), shlex.split(given["folders"])
    except ValueError as error:
        raise Problem(422, f"a quotation mark is left open: {error}", field="command") from error
    return given | {
        **catalogue.given(visit),
        "speaks": visit.form.get("speaks", "mcp"),
        "risk": visit.wanted("risk"),
        "command": command,
        "folders": folders,
        "network": "network" in visit.form,
        "allow_private": "allow_private" in visit.form,
    }


def _is_settled(one: ServerView) -> bool:
    return one.state == "connected" or (one.problem not in ("", _BEGINNING))


async def _until(visit: Visit, name: str, holds: Any) -> None:
    """Wait until that holds of a server, but not for long: the page says how it is."""
    for _ in range(int(TRIED_S / POLL_S)):
        found = {one.name: one for one in (await visit.api.get(ServerList, PATH)).servers}
        if name in found and holds(found[name]):
            return
        await asyncio.sleep(POLL_S)
