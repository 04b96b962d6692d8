"""The timetable over HTTP: its rows, and what became of their slots."""
