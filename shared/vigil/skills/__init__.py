"""Skills of the open Agent Skills form: folders with a SKILL.md that a person enabled."""
