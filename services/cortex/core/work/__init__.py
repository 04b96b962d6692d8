"""What takes longer than an answer: jobs, other sessions, calls that nobody waits for, and what a
person has to decide first."""
