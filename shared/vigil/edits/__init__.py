"""What is written into vigil.toml: sections and keys, by commands and by admins in the console."""
