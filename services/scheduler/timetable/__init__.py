"""The timetable: decides what becomes of each instant at which a row is due (LOOPS L1)."""
