"""What the scheduler tells of times at which nobody was there to run what was due."""
