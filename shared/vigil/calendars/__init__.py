"""Calendars of people: on CalDAV servers, at iCalendar addresses, in files."""
