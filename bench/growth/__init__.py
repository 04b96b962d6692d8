"""What Vigil costs when much is stored: long sessions, many at rest, a large log, many sockets."""
