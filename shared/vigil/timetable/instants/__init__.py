"""The instants of single schedules: cron expressions, and times on somebody's clocks. Pure."""
