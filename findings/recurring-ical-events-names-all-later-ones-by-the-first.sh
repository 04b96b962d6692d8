#!/usr/bin/env bash
# recurring-ical-events gives every occurrence after a change of "this and all later ones" the RECURRENCE-ID of the first.
#
# Expected: each occurrence has the RECURRENCE-ID that it has in the series, as those that nobody changed have
# here (the library adds it to them), and as ical.js has it: by that a single one is told from the others (RFC
# 5545, 3.8.4.4), declined, moved or taken out.
# Seen (2026-11-30, recurring-ical-events 3.8.2, icalendar 7.3.2, Python 3.11; ical.js 2.2.1): of six weekly
# meetings, of which the third and all later ones were put half an hour later (RANGE=THISANDFUTURE, as Evolution
# writes it), the times are right, but the third to the sixth all have the third's RECURRENCE-ID. Whoever
# remembers what was done by it reminds of one of four, or takes out the third where the fifth was meant.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check recurring-ical-events==3.8.2 icalendar==7.3.2
npm install --silent --no-audit --no-fund --prefix . ical.js@2.2.1 >/dev/null

cat >meetings.ics <<'ICS'
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//meetings//EN
BEGIN:VEVENT
UID:weekly@example.org
DTSTAMP:20260101T000000Z
DTSTART:20260105T100000Z
DTEND:20260105T110000Z
RRULE:FREQ=WEEKLY;COUNT=6
SUMMARY:Standup
END:VEVENT
BEGIN:VEVENT
UID:weekly@example.org
DTSTAMP:20260101T000000Z
SEQUENCE:1
RECURRENCE-ID;RANGE=THISANDFUTURE:20260119T100000Z
DTSTART:20260119T103000Z
DTEND:20260119T113000Z
SUMMARY:Standup
END:VEVENT
END:VCALENDAR
ICS

cat >by_ical_js.mjs <<'NODE'
import { readFileSync } from "node:fs";
import ICAL from "ical.js";
const events = new ICAL.Component(ICAL.parse(readFileSync("meetings.ics", "utf8")))
  .getAllSubcomponents("vevent").map((one) => new ICAL.Event(one));
const series = events.find((one) => !one.isRecurrenceException());
events.filter((one) => one !== series).forEach((one) => series.relateException(one));
const all = series.iterator();
const compact = (time) => time.toICALString();
for (let at = all.next(); at; at = all.next()) {
  const { recurrenceId, startDate } = series.getOccurrenceDetails(at);
  console.log(compact(startDate), compact(recurrenceId));
}
NODE

venv/bin/python - <<'PYTHON'
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import icalendar
import recurring_ical_events

print("recurring-ical-events", version("recurring-ical-events"), "on Python", sys.version.split()[0])
calendar = icalendar.Calendar.from_ical(Path("meetings.ics").read_text())
found = recurring_ical_events.of(calendar).between((2026, 1, 1), (2026, 4, 1))
form = "%Y%m%dT%H%M%SZ"
seen = sorted(f"{one['DTSTART'].dt:{form}} {one['RECURRENCE-ID'].dt:{form}}" for one in found)
other = subprocess.run(["node", "by_ical_js.mjs"], check=True, capture_output=True, text=True).stdout.split("\n")
print("begins           RECURRENCE-ID     by ical.js")
for ours, theirs in zip(seen, other):
    print(ours, theirs.split()[1])
names = [one.split()[1] for one in seen]
begins = [one.split()[0] for one in seen]
theirs = [one.split() for one in other if one]
is_same = (
    names[2:] == ["20260119T100000Z"] * 4
    and begins == [one[0] for one in theirs]
    and len({one[1] for one in theirs}) == 6
)
print("as before" if is_same else "the behaviour has changed")
sys.exit(0 if is_same else 1)
PYTHON
