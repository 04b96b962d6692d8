// Reads {calendar, days} from stdin and writes which events are due on each day, {day: [title]}, as
// ical.js (whose module is the argument) finds them, on the clocks of this process.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { default: ICAL } = await import(pathToFileURL(process.argv[2]).href);
const { calendar, days } = JSON.parse(readFileSync(0, "utf8"));
const root = new ICAL.Component(ICAL.parse(calendar));
for (const zone of root.getAllSubcomponents("vtimezone")) ICAL.TimezoneService.register(zone);
const due = Object.fromEntries(days.map((day) => [day, []]));
const bounds = days.map((day) => {
  const [year, month, date] = day.split("-").map(Number);
  return [day, new Date(year, month - 1, date).getTime(), new Date(year, month - 1, date + 1).getTime()];
});
const last = bounds.at(-1)[2];
const note = ({ item, startDate, endDate }) => {
  const [begins, ends] = [startDate.toJSDate().getTime(), endDate.toJSDate().getTime()];
  for (const [day, since, until] of bounds)
    if (begins < until && (ends > since || (begins === ends && begins >= since))) due[day].push(item.summary);
};
for (const part of root.getAllSubcomponents("vevent")) {
  const event = new ICAL.Event(part);
  if (event.isRecurrenceException()) continue;
  for (const other of root.getAllSubcomponents("vevent")) {
    const exception = new ICAL.Event(other);
    if (exception.isRecurrenceException() && exception.uid === event.uid) event.relateException(exception);
  }
  if (!event.isRecurring()) {
    note({ item: event, startDate: event.startDate, endDate: event.endDate });
    continue;
  }
  const times = event.iterator();
  for (let at = times.next(); at && at.toJSDate().getTime() < last; at = times.next())
    note(event.getOccurrenceDetails(at));
}
process.stdout.write(JSON.stringify(due));
