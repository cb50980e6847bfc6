"""Preparation of a recipe's data: read, filtered, encoded and stored once, and used again until something changes."""
