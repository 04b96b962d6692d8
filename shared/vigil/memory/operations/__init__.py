"""The operations on a memory: one module each, whose `OPERATION` says all there is to it."""
