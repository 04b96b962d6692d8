"""What the board is the truth of, on the command line: tasks, goals, preferences, actions."""
