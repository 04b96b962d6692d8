"""What the executor writes onto the board: what loops ask for, and how workers and runs end."""
