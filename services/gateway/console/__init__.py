"""The console: pages of the gateway for people, made on the server, that work without scripts."""
