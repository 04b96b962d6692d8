"""`vigil cron`: the timetable on the command line."""
