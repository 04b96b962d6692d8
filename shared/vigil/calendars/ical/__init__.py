"""What reads and writes iCalendar: in a process of its own, by the libraries for it."""
