"""Readers of text files, tables and media files: as lines, pairs, documents, or labelled or tagged examples."""
