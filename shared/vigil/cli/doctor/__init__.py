"""`vigil doctor`: what could be wrong on this machine, and what to do about it."""
