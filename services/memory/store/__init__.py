"""The replica's database: its tables, what is written to them and read from them (SPEC M-9)."""
