#!/usr/bin/env bash
# ical.js (the reader of Thunderbird) and a VTIMEZONE whose changes of the clocks are a list.
#
# Expected: RDATE may hold several dates in one property (RFC 5545, 3.8.5.2), in a VTIMEZONE, too, and it is read
#   there as in events, where all of them count. icalendar (Python) writes zones that way.
# Seen (ical.js 2.2.1, 2026-11-28): of each RDATE property of a STANDARD or DAYLIGHT component the first date is
#   read, and the others are dropped without a word. So from the second year on an event of that zone is an hour
#   off for half a year. The same dates as a property each are read as they should be.
#
# Exits with 0 as long as that is so.
set -euo pipefail
cd "$(mktemp -d)"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts ical.js@2.2.1 >/dev/null
cat > finding.mjs <<'JS'
import { readFileSync } from "node:fs";
import assert from "node:assert/strict";
import ICAL from "ical.js";

const part = (name, from, to, first, more) =>
  [`BEGIN:${name}`, `DTSTART:${first}`, ...more, `TZOFFSETFROM:${from}`, `TZOFFSETTO:${to}`, `END:${name}`];
const zone = (dates) => new ICAL.Timezone({
  tzid: "Here/Berlin",
  component: new ICAL.Component(ICAL.parse([
    "BEGIN:VTIMEZONE", "TZID:Here/Berlin",
    ...part("DAYLIGHT", "+0100", "+0200", "20240331T020000", dates("20250330T020000", "20260329T020000")),
    ...part("STANDARD", "+0200", "+0100", "20241027T030000", dates("20251026T030000", "20261025T030000")),
    "END:VTIMEZONE"].join("\r\n"))),
});
const utc = (in_) => [2025, 2026].map((year) => {
  const noon = ICAL.Time.fromData({ year, month: 7, day: 1, hour: 12, minute: 0, second: 0 }, in_);
  return new Date(noon.toUnixTime() * 1000).toISOString();
});
const version = JSON.parse(readFileSync("node_modules/ical.js/package.json")).version;
const listed = utc(zone((...dates) => [`RDATE:${dates.join(",")}`]));
const apart = utc(zone((...dates) => dates.map((one) => `RDATE:${one}`)));
console.log("ical.js", version, "noon of 1 July in UTC, by a list:", ...listed, "one by one:", ...apart);
assert.deepEqual(apart, ["2025-07-01T10:00:00.000Z", "2026-07-01T10:00:00.000Z"]);
assert.deepEqual(listed, ["2025-07-01T10:00:00.000Z", "2026-07-01T11:00:00.000Z"], "changed: lists are read otherwise");
JS
node finding.mjs
echo "as described"
