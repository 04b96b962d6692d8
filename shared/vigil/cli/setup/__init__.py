"""Starting and ending, who thinks, and what is set."""
