"""What a model computes for one text, by name: watched, replaced on its way, kept and stored."""
