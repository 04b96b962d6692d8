"""What `vigil.Client` can do, a group of calls in each module."""
