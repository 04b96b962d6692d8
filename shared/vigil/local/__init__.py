"""Vigil on one machine: its home folder, its processes, what `vigil up` starts."""
