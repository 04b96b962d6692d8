"""The rehearsal model: a deterministic stand-in, so that every loop can be seen working."""
