"""Recipes: what can be configured, how it is read, and what is refused."""
