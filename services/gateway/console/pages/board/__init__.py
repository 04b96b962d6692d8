"""What is to be done: the timetable, tasks, goals, cycles, and what was allowed beforehand."""
