#!/usr/bin/env bash
# icalendar's add_missing_timezones() adds rules for a zone that end in 2037, also to a series that doesn't end.
#
# Expected: for Europe/Berlin, whose clocks change by a rule that is known and has no end, an RRULE for each
# change (as the zones that calendar programs write have it), or enough of them for the events that are there.
# Seen (2026-11-28, icalendar 7.3.2, Python 3.11, tzdata 2026.6): what is added lists each change until 2037 as
# RDATE, without an RRULE, and says so in a COMMENT alone. Whoever goes by these rules, as RFC 5545 wants it,
# has a weekly meeting without an end an hour off in each summer from 2038 on, the library's own reader of them
# included.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check icalendar==7.3.2 tzdata==2026.6

venv/bin/python - <<'PYTHON'
import sys
from datetime import datetime
from importlib.metadata import version
from zoneinfo import ZoneInfo

import icalendar

BERLIN = ZoneInfo("Europe/Berlin")
event = icalendar.Event()
event.add("uid", "weekly")
event.add("dtstart", datetime(2026, 1, 5, 9, tzinfo=BERLIN))
event.add("rrule", {"FREQ": "WEEKLY"})
calendar = icalendar.Calendar()
calendar.add_component(event)
calendar.add_missing_timezones()
(zone,) = calendar.walk("VTIMEZONE")
rules = zone.to_tz(lookup_tzid=False)
print("icalendar", version("icalendar"), "on Python", sys.version.split()[0])
print("COMMENT:", zone.get("COMMENT"))
found = {}
for year in (2026, 2037, 2038, 2050):
    noon = datetime(year, 7, 1, 12)
    found[year] = [str(noon.replace(tzinfo=one).utcoffset()) for one in (rules, BERLIN)]
    print(f"1 July {year}: {found[year][0]} by what was added, {found[year][1]} in Berlin")
has_rule = b"RRULE" in zone.to_ical()
is_same = not has_rule and [one[0] == one[1] for one in found.values()] == [True, True, False, False]
print("as before" if is_same else "the behaviour has changed")
sys.exit(0 if is_same else 1)
PYTHON
