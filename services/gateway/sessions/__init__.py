"""Sessions as clients see them: messages in, answers out, history, sockets."""
