#!/usr/bin/env bash
# agent-client-protocol (the Python SDK of the Agent Client Protocol): an agent that is made as the
# SDK's own examples make one, a subclass of `acp.Agent`, tells success of methods that it doesn't
# have.
#
# Expected: an agent that defines only `initialize` answers `session/load` and `session/set_mode`
# with the error -32601 (method not found), as one that isn't a subclass does: a client that loads a
# session, or switches a mode, then knows that it can't.
# Seen (2026-11-29, agent-client-protocol 0.12.1, Python 3.11): `acp.Agent` is a typing.Protocol
# whose methods have `...` as their body. A subclass inherits them, so the router finds a method,
# which returns None, and None is told as the empty result that these two methods may have. So the
# client takes the session for loaded. Of `session/new` and `session/prompt`, whose result has
# fields, the client gets a result of null and fails as it reads that, also without the error.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check agent-client-protocol==0.12.1

cat > agent.py <<'PY'
import asyncio
import sys

import acp


class Subclass(acp.Agent):
    async def initialize(self, protocol_version, **_):
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)


class Plain:
    def on_connect(self, conn):
        pass

    async def initialize(self, protocol_version, **_):
        return acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)


asyncio.run(acp.run_agent({"subclass": Subclass, "plain": Plain}[sys.argv[1]]()))
PY

cat > client.py <<'PY'
import asyncio
import sys
from importlib.metadata import version

import acp


class Client:
    async def session_update(self, *_, **__):
        pass

    async def request_permission(self, *_, **__):
        raise AssertionError


async def main() -> dict[tuple[str, str], str]:
    seen = {}
    for kind in ("subclass", "plain"):
        async with acp.spawn_agent_process(Client(), sys.executable, "agent.py", kind) as (agent, _):
            await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            asked = {
                "session/load": agent.load_session(cwd="/", session_id="1", mcp_servers=[]),
                "session/set_mode": agent.set_session_mode(session_id="1", mode_id="m"),
                "session/new": agent.new_session(cwd="/", mcp_servers=[]),
            }
            for name, call in asked.items():
                try:
                    await call
                    seen[kind, name] = "success"
                except Exception as error:
                    seen[kind, name] = f"{type(error).__name__} {getattr(error, 'code', '')}".strip()
    return seen


print("agent-client-protocol", version("agent-client-protocol"))
seen = asyncio.run(main())
for (kind, name), told in seen.items():
    print(f"{kind:9}{name:17}-> {told}")
assert seen["subclass", "session/load"] == seen["subclass", "session/set_mode"] == "success"
assert seen["subclass", "session/new"] == "ValidationError"
assert {told for (kind, _), told in seen.items() if kind == "plain"} == {"RequestError -32601"}
print("an agent that subclasses acp.Agent tells success of what it doesn't have")
PY

venv/bin/python client.py
