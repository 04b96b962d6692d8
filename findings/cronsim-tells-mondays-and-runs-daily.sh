#!/usr/bin/env bash
# cronsim's explain() and its own iterator read two ordinary expressions differently.
#
# Expected: what explain() says of an expression is when the iterator says it is due.
# Seen (2026-11-28, cronsim 2.8, Python 3.11):
# * `0 0 1-31 * 1` is explained as "At 00:00 on Monday", and due every day. Neither field begins with a
#   star, so of day of month and day of week either will do, as in Debian's cron; the explanation takes
#   `1-31` for a star, the iterator doesn't.
# * `*/90 * * * *` is explained as "Every 90th minute of every hour", and due once an hour.
# Who shows explain() to a person who is to confirm a schedule shows them something else.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cronsim==2.8

venv/bin/python - <<'PYTHON'
import sys
from datetime import datetime
from importlib.metadata import version
from itertools import islice

from cronsim import CronSim

START = datetime(2026, 1, 1)
SEEN = {
    "0 0 1-31 * 1": ("At 00:00 on Monday", ["Fri 00:00", "Sat 00:00", "Sun 00:00", "Mon 00:00"]),
    "*/90 * * * *": (
        "Every 90th minute of every hour",
        ["Thu 01:00", "Thu 02:00", "Thu 03:00", "Thu 04:00"],
    ),
}

print("cronsim", version("cronsim"), "on Python", sys.version.split()[0])
is_same = True
for expression, seen in SEEN.items():
    words = CronSim(expression, START).explain()
    due = [f"{at:%a %H:%M}" for at in islice(CronSim(expression, START), 4)]
    print(f"{expression}: explained as {words!r}; due {', '.join(due)}")
    is_same = is_same and (words, due) == seen
print("as before" if is_same else "the behaviour has changed")
sys.exit(0 if is_same else 1)
PYTHON
