"""Word vectors: their files and their space, and what their training reads: windows, phrases, Huffman codes."""
