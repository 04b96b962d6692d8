// Reads calendars from stdin, [{calendar, until}], and writes the instants at which their events
// begin, [[seconds since 1970]], as ical.js (whose module is the argument) finds them.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { default: ICAL } = await import(pathToFileURL(process.argv[2]).href);
const read = JSON.parse(readFileSync(0, "utf8")).map(({ calendar, until }) => {
  const root = new ICAL.Component(ICAL.parse(calendar));
  for (const zone of root.getAllSubcomponents("vtimezone")) ICAL.TimezoneService.register(zone);
  const end = Date.parse(until) / 1000;
  const found = [];
  for (const part of root.getAllSubcomponents("vevent")) {
    const event = new ICAL.Event(part);
    const times = event.iterator();
    for (let at = times.next(); at && at.toUnixTime() <= end; at = times.next())
      found.push(at.toUnixTime());
  }
  return found.sort((a, b) => a - b);
});
process.stdout.write(JSON.stringify(read));
