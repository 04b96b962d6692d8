#!/usr/bin/env bash
# uvicorn 0.54.0 keeps blanks at the end of a header's value if httptools 0.9.0 is installed, and not with h11.
#
# Expected: RFC 9110, 5.5: "A field value does not include leading or trailing whitespace", so `x-name:  value  `
# is `value`, whichever parser `uvicorn[standard]` or `uvicorn` brings; gunicorn's issue 3245 lists uvicorn among
# those that strip it.
# Seen (2026-11-28): b'value' with h11, b'value \t ' with httptools, which `--http auto` prefers. The same application
# compares a token, a name or a number of such a header right or wrong by what else is installed. MCP 2026-07-28 has
# servers accept blanks around `Mcp-Name`, and its conformance suite sends them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check uvicorn==0.54.0 httptools==0.9.0 h11==0.16.0
cat > ask.py <<'PYTHON'
import asyncio
import importlib.metadata as metadata

import uvicorn


async def app(scope, receive, send):
    value = dict(scope["headers"]).get(b"x-name")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": repr(value).encode()})


async def asked(http: str) -> str:
    config = uvicorn.Config(app, port=0, http=http, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET / HTTP/1.1\r\nhost: a\r\nx-name:  value \t \r\nconnection: close\r\n\r\n"
    )
    answer = (await reader.read()).decode()
    server.should_exit = True
    await serving
    return next(line for line in answer.splitlines() if line.startswith("b'"))


async def main() -> None:
    for name in ("uvicorn", "httptools", "h11"):
        print(name, metadata.version(name))
    found = {http: await asked(http) for http in ("h11", "httptools", "auto")}
    for http, value in found.items():
        print(f"{http:<10} {value}")
    kept = repr(b"value \t ")
    assert found == {"h11": repr(b"value"), "httptools": kept, "auto": kept}, "it changed"


asyncio.run(main())
PYTHON
venv/bin/python ask.py
