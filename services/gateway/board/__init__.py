"""What the board is the truth of, over HTTP: tasks, goals, preferences, actions."""
