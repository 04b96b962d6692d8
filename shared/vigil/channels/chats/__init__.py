"""What channels to chat networks have in common: how far one was read, what is heard of whom, and
how a long text is split.

What decides is pure and apart (`place`, `parts`); `posts` stores what was heard.
"""
