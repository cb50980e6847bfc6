"""What the numbers of a pass say: of heads, blocks, searches, vectors and answers."""
