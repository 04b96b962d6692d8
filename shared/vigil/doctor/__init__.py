"""What could be wrong with a machine and an installation: each check looks at one thing."""
