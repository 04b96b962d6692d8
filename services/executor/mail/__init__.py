"""What tools do in people's own mailboxes, each time by a connection of its own (ADR 51).

Who follows a mailbox is in `mailboxes`, beside this.
"""
