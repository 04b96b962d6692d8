"""A home of an older version is brought up to date: by steps, which can be rehearsed."""
