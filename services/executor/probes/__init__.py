"""What is watched: looked at without a model, one module for each kind (LOOPS L-3)."""
