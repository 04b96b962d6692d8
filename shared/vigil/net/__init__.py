"""The way out to the web: which addresses a request of ours may go to, and going there."""
