#!/usr/bin/env bash
# Importing the methods of aiogram takes more than a hundred megabytes of memory, before anything is called.
#
# A program that calls three methods of Telegram's Bot API over HTTP would be expected to need some tens of megabytes for a
# client library (the guess before it was run: 40 MB), as for aiohttp, which is the part that speaks HTTP.
#
# Seen (2026-11-28, aiogram 3.31.0, pydantic 2.13.5, CPython 3.11): `from aiogram.methods import SendMessage` alone raises the
# resident memory by some 160 MB, of which aiohttp takes 25. Each type and method of the API is a pydantic model, all of them
# are built at import, and asking for one imports all; each process of a program that has several pays for it anew.
set -euo pipefail
version=3.31.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q "aiogram==$version" "pydantic==2.13.5"
cat > run.py <<'P'
import resource
import sys
from pathlib import Path

PAGE = resource.getpagesize()


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


begun = resident_mb()
import aiohttp  # noqa: E402

http = resident_mb()
from aiogram.methods import SendMessage  # noqa: E402

whole = resident_mb()
print(f"Python {sys.version.split()[0]}: {begun:.0f} MB at first, {http - begun:.0f} MB more by aiohttp, "
      f"{whole - http:.0f} MB more by one method of aiogram ({SendMessage.__name__})")
sys.exit(0 if whole - http > 80 else 1)
P
echo "aiogram $version"
if venv/bin/python run.py; then
    echo "as seen: over 80 MB for one method"
else
    echo "changed: one method takes less than 80 MB now"
    exit 1
fi
