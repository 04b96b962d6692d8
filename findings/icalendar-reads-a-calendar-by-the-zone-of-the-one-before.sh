#!/usr/bin/env bash
# icalendar reads a calendar by the rules that another calendar, read before, had for a zone of the same name.
#
# Expected: a document that brings the rules of its zone "Office" along is read by these; what was read before
# in the same process changes nothing.
# Seen (2026-11-28, icalendar 7.3.2, Python 3.11): zones of documents are kept by their names for the process.
# Of two documents that each define "Office", as +05:00 and as -03:00, the second is read by the rules of the
# first, eight hours off; and a third that names "Office" and defines nothing isn't naive, as it would be if read
# alone, but at +05:00. There is no error and no warning. Names like "Office", "Eastern" or "Customized Time Zone"
# come from programs that let people name zones, so whoever reads calendars of several people meets two of them.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check icalendar==7.3.2 tzdata==2026.6

venv/bin/python - <<'PYTHON'
import subprocess
import sys
from importlib.metadata import version

READ = """
import sys
import icalendar

ZONE = '''BEGIN:VTIMEZONE
TZID:Office
BEGIN:STANDARD
DTSTART:19700101T000000
TZOFFSETFROM:{offset}
TZOFFSETTO:{offset}
END:STANDARD
END:VTIMEZONE
'''
CALENDAR = '''BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//EN
{zone}BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
DTSTART;TZID=Office:20261201T090000
END:VEVENT
END:VCALENDAR
'''
for offset in sys.argv[1:]:
    zone = "" if offset == "none" else ZONE.format(offset=offset)
    (event,) = icalendar.Calendar.from_ical(CALENDAR.format(zone=zone)).walk("VEVENT")
    at = event["DTSTART"].dt
    print(offset, "naive" if at.tzinfo is None else at.isoformat()[-6:])
"""


def read(*offsets: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", READ, *offsets], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


alone = [line for offset in ("+0500", "-0300", "none") for line in read(offset)]
together = read("+0500", "-0300", "none")
print("icalendar", version("icalendar"), "on Python", sys.version.split()[0])
print("each in a process of its own:", "; ".join(alone))
print("one after the other in one:  ", "; ".join(together))
is_same = alone == ["+0500 +05:00", "-0300 -03:00", "none naive"] and together == [
    "+0500 +05:00",
    "-0300 +05:00",
    "none +05:00",
]
print("as before" if is_same else "the behaviour has changed")
sys.exit(0 if is_same else 1)
PYTHON
