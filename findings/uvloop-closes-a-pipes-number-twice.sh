#!/usr/bin/env bash
# uvloop closes the descriptor of a pipe by its number, and then has the file object close that number once more.
#
# `connect_read_pipe` and `connect_write_pipe` take a file object, and their transport closes it. The guess before it was run:
# like asyncio, uvloop closes it by that object, once. What is closed in between by its number alone may be somebody else's file
# by the second time: another thread may have opened one meanwhile, and it gets the lowest number that is free.
#
# Seen (2026-11-30, uvloop 0.23.0, CPython 3.11): as the file object is closed, its descriptor is closed already (EBADF), at
# both ends of a pipe. asyncio's own loop closes it by the object. Handing over an object that was opened with `closefd=False`,
# on a descriptor that nobody else closes, has uvloop close it once.
set -euo pipefail
version=0.23.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q "uvloop==$version"
cat > run.py <<'P'
import asyncio
import io
import os
import sys

import uvloop

SEEN = []


class Pipe(io.FileIO):
    """Notes whether its descriptor is still open as it is told to close."""

    def close(self):
        if not self.closed:
            try:
                os.fstat(self.fileno())
                SEEN.append("open")
            except OSError:
                SEEN.append("closed already")
        try:
            super().close()
        except OSError:
            pass


async def both_ends():
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    out, _ = await loop.connect_read_pipe(asyncio.Protocol, Pipe(reading, "rb"))
    into, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, Pipe(writing, "wb"))
    into.close()
    out.close()
    await asyncio.sleep(0.1)


found = {}
for name, run in (("asyncio", asyncio.run), ("uvloop", uvloop.run)):
    SEEN.clear()
    run(both_ends())
    found[name] = list(SEEN)
    print(f"Python {sys.version.split()[0]}, {name}: as a pipe's object is closed its descriptor is", *SEEN, sep=" | ")
sys.exit(0 if set(found["asyncio"]) == {"open"} and set(found["uvloop"]) == {"closed already"} else 1)
P
echo "uvloop $version"
if venv/bin/python run.py; then
    echo "as seen: closed by its number before, with uvloop"
else
    echo "changed: it is closed once, or asyncio does it, too"
    exit 1
fi
