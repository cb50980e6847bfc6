"""Preparation of a recipe's data: it is read, filtered, encoded and stored once, and reused until something changes."""
