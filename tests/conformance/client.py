"""Vigil's MCP client as the conformance suite runs it: `client.py URL`, the scenario in a variable.

What it consists of is what an executor and a gateway use, without a broker: the connection, what is
taken of tools, a sign-in and its tokens. The person is played here: agrees, and fills in defaults.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types

from services.cortex.core.work.asked import form_answer
from services.executor.mcp import tools
from services.executor.mcp.client.connection import McpConnection
from services.executor.mcp.server import WANTED_OTHERWISE
from services.executor.mcp.web import McpEndpoint, WebWire, port_rules
from vigil.contracts import Decision
from vigil.contracts.tools import ServerAnswer
from vigil.errors import VigilError
from vigil.oauth import kept
from vigil.oauth.bearer import Bearer
from vigil.oauth.signing_in import NothingToSignIn, SigningIn, came_back
from vigil.settings.servers import McpServer

NAME = "tested"
BACK = "http://127.0.0.1:3000/callback"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
SIGN_INS_MAX = 3
ROUNDS_MAX = 5


class Tested:
    """One server, and the person who uses it."""

    def __init__(self, url: str, home: Path, scenario: str, context: dict[str, Any]) -> None:
        secret = ""
        if "client_secret" in context:
            file = home / "secret"
            file.write_text(context["client_secret"])
            secret = str(file)
        id_ = context.get("client_id", DOCUMENT if scenario == "auth/basic-cimd" else "")
        self._section = McpServer(
            url=url, allow_private=True, client_id=id_, client_secret_file=secret
        )
        self._home = home
        self._bearer = Bearer(home, NAME, url, allow_private=True)
        self._connection = McpConnection(NAME, self._open, self._listed, self._lost)
        self._is_listed, self._is_lost = asyncio.Event(), asyncio.Event()
        self._found: tuple[tools.OfferedTool, ...] = ()
        self._why = ""
        self._sign_ins = 0

    def _open(self, on_end: Any) -> WebWire:
        url = self._section.url
        endpoint = McpEndpoint(url=url, headers={}, rules=port_rules(self._section, ()))
        return WebWire(endpoint, on_end, bearer=self._bearer)

    async def _listed(self, listed: Sequence[types.Tool], _: dict[str, str]) -> None:
        self._found, why = tools.offers(NAME, self._section, listed, output_bytes_max=65536)
        for problem in why:
            print(problem)
        self._is_listed.set()

    def _lost(self, reason: str, _: int) -> None:
        self._why = reason
        self._is_lost.set()

    async def run(self) -> None:
        running = asyncio.create_task(self._connection.run())
        try:
            while not self._is_listed.is_set():
                await asyncio.wait(
                    [asyncio.create_task(one.wait()) for one in (self._is_listed, self._is_lost)],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if self._is_lost.is_set():
                    print(self._why)
                    self._is_lost.clear()
                    # One that began before a sign-in may fail after it.
                    if self._signed_in() != "signed in":
                        await self._sign_in()
            for offer in self._found:
                await self._use(offer)
        finally:
            self._connection.stop()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _use(self, offer: tools.OfferedTool) -> None:
        given = filled_in(offer.tool.input_schema)
        if offer.wire == "json_schema_echo":  # what was taken of the other one's schema
            (shown,) = [one for one in self._found if one.wire == "json_schema_2020_12_tool"]
            given = {"schema": shown.tool.input_schema}
        answered: ServerAnswer | None = None
        for _ in range(ROUNDS_MAX):
            try:
                told = await self._connection.call(offer.wire, given, 20.0, answered)
            except VigilError as error:
                print(f"{offer.wire}: {error}")
                # What was refused, also if something else was let in since.
                if self._signed_in() in ("", "signed in"):
                    return
                await self._sign_in()
                continue
            if not isinstance(told, types.InputRequiredResult):
                print(tools.described(told, 65536)[0][:500])
                return
            wanted = self._connection.wanted(told, given, None)
            if wanted is None:
                print(f"{offer.wire}: {WANTED_OTHERWISE}")
                return
            verdict = Decision(approval_id="", verdict="accept", digest="", by="ann")
            content = form_answer.filled(wanted, verdict)
            assert isinstance(content, dict)
            problem = form_answer.problem(wanted, offer.tool, content)
            if problem is not None:  # the person has to write something
                content |= filled_in(wanted.form)
            answered = ServerAnswer(
                action="accept", name=wanted.name, content=content, state=wanted.state
            )

    def _signed_in(self) -> str:
        return kept.state_of(self._home, NAME, self._section.url)

    async def _sign_in(self) -> None:
        """Sign in as a person does: by the link, in a browser that agrees to everything."""
        self._sign_ins += 1
        if self._sign_ins > SIGN_INS_MAX:
            raise SystemExit("signed in often enough")
        signing_in = SigningIn(self._home, NAME, self._section, BACK)
        try:
            link = await signing_in.begin()
            async with httpx2.AsyncClient(trust_env=False) as browser:
                where = httpx2.URL((await browser.get(link)).headers["location"])
            signing_in.come_back(came_back(where.query.decode()))
            await signing_in.finish()
        except NothingToSignIn:
            print("nothing to sign in to")
        finally:
            await signing_in.close()


def filled_in(schema: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that fit a simple schema: what has to be there, no more."""
    values: dict[str, Any] = {
        "number": 1, "integer": 1, "boolean": True, "array": [], "object": {},
        "string": " text \u00e9",
    }  # fmt: skip
    needed = schema.get("required", ())
    return {
        name: of["enum"][0] if of.get("enum") else of.get("default", values.get(of.get("type", "")))
        for name, of in schema.get("properties", {}).items()
        if name in needed and isinstance(of, dict) and isinstance(of.get("type", ""), str)
    }


async def main() -> None:
    url = sys.argv[-1]
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as home:
        async with asyncio.timeout(170):
            await Tested(url, Path(home), scenario, context).run()


if __name__ == "__main__":
    asyncio.run(main())
