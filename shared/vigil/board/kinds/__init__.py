"""The kinds of what stands on the board: one module each, whose `KIND` says all there is to it."""
