#!/usr/bin/env bash
# Readers of calendars show the instances that a series' EXRULE takes out, and say nothing of it.
#
# Expected: RFC 5545 took EXRULE out of RFC 2445 (appendix A.3), and calendars made before go on having it: a
# reader takes out what it names, as the libraries of rules that they stand on do, or tells that it can't.
# Seen (2026-11-30, Python 3.11, Node 20): of a daily meeting, 14 times, EXRULE:FREQ=WEEKLY;BYDAY=SA,SU,
# python-dateutil 2.9.0 and rrule 2.8.1 give the ten working days; recurring-ical-events 3.8.2 (icalendar
# 7.3.2), icalevents 0.3.1, ical.js 2.2.1, ical-expander 3.2.0 and node-ical 0.27.2 give 14 days, with no error.
# Whoever is reminded by them goes to the office on four days of weekends.
set -euo pipefail

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check recurring-ical-events==3.8.2 icalendar==7.3.2 \
	icalevents==0.3.1 python-dateutil==2.9.0.post0
npm install --silent --no-audit --no-fund --prefix . ical.js@2.2.1 ical-expander@3.2.0 node-ical@0.27.2 rrule@2.8.1 >/dev/null

cat >standup.ics <<'ICS'
BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//standups//EN
BEGIN:VEVENT
UID:daily@example.org
DTSTAMP:20260101T000000Z
DTSTART:20260105T100000Z
DTEND:20260105T101500Z
RRULE:FREQ=DAILY;COUNT=14
EXRULE:FREQ=WEEKLY;BYDAY=SA,SU
SUMMARY:Standup
END:VEVENT
END:VCALENDAR
ICS

cat >in_node.mjs <<'NODE'
import { readFileSync } from "node:fs";
import ICAL from "ical.js";
import IcalExpander from "ical-expander";
import ical from "node-ical";
import rules from "rrule";
const text = readFileSync("standup.ics", "utf8");
const event = new ICAL.Event(new ICAL.Component(ICAL.parse(text)).getFirstSubcomponent("vevent"));
const all = event.iterator();
let count = 0;
while (all.next() && count < 100) count++;
console.log("ical.js", count);
const window = [new Date("2026-01-01"), new Date("2026-03-01")];
console.log("ical-expander", new IcalExpander({ ics: text, maxIterations: 100 }).between(...window).occurrences.length);
const read = Object.values(ical.sync.parseICS(text)).find((one) => one.type === "VEVENT");
console.log("node-ical", read.rrule.all().length);
const lines = text.split("\n").filter((line) => /^(DTSTART|RRULE|EXRULE)/.test(line));
console.log("rrule", rules.rrulestr(lines.join("\n")).all().length);
NODE

venv/bin/python - <<'PYTHON'
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import icalendar
import recurring_ical_events
from dateutil.rrule import rrulestr
from icalevents.icalevents import events

text = Path("standup.ics").read_text()
calendar = icalendar.Calendar.from_ical(text)
since, until = datetime(2026, 1, 1), datetime(2026, 3, 1)
rules = "\n".join(line for line in text.splitlines() if line.startswith(("DTSTART", "RRULE", "EXRULE")))
seen = {
    "recurring-ical-events": len(recurring_ical_events.of(calendar).between(since, until)),
    "icalevents": len(events(string_content=text.encode(), start=since, end=until)),
    "python-dateutil": len(list(rrulestr(rules))),
}
told = subprocess.run(["node", "in_node.mjs"], check=True, capture_output=True, text=True).stdout
seen |= {name: int(count) for name, count in map(str.split, told.splitlines())}
errors = [error for event in calendar.walk("VEVENT") for error in event.errors]
for name, count in seen.items():
    print(f"{name:22} {count} times")
print("errors told:", errors)
by_rule = {"python-dateutil", "rrule"}
is_same = not errors and all(count == (10 if name in by_rule else 14) for name, count in seen.items())
print("as before" if is_same else "the behaviour has changed")
sys.exit(0 if is_same else 1)
PYTHON
