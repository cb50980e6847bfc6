"""Synthetic corpora: scenes in three languages, stories, and drawn and spoken shapes."""
