"""Looking inside: what a model attends to, recorded and drawn."""
