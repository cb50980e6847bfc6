"""Bag of words."""
