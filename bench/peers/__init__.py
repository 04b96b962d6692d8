"""Other programs at the same work as Vigil: each runs with what bench/peers/peers.lock has."""
