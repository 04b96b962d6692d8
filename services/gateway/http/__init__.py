"""HTTP as the gateway speaks it: the server, who is let in, limits, errors, routes."""
