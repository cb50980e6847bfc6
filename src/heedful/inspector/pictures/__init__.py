"""Numbers as pictures."""
