"""A terminal that a person types at while an agent talks: its line, its modes, who draws when."""
