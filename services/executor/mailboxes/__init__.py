"""People's own mailboxes (ADR 51): what comes there is stored, and tools look into them.

Each is followed by one replica at a time (`follower`), which stores every new mail once (`log`).
Tools have connections of their own (`executor.mail`). Nothing is marked, moved or deleted.
"""
