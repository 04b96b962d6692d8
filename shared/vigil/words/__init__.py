"""What of a call is the person's own word, so that outside content can't have steered it (FLOW F2).
Pure.

`own` knows what a person said, `aims` what the arguments of a tool are for, and `rule` judges a
call by both.
"""
