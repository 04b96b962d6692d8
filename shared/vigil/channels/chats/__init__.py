"""What channels to chat networks have in common: the section of a bot, how its account is followed,
what is heard of whom, how a long text is split, and how it's sent.

What decides is pure and apart (`place`, `parts`, `lists`, `calls`, `remarks` …). Around it are
`posts`, which stores what was heard, `follower` and `sender`, which a network fills in.
"""
