"""How things look, decided without I/O: a week, a graph, a tree of causes, cards, differences."""
