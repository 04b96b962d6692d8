"""The tools that the core answers: one module each, or those that belong together. Pure."""
