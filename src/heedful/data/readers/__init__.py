"""Readers of text files and tables: as lines, pairs, documents, or labelled or tagged texts."""
