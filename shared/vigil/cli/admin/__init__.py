"""Commands for whoever runs an installation: start, stop, tokens, backup, erase."""
