"""What is read back from the log when it is asked for: what another session knew, old letters."""
