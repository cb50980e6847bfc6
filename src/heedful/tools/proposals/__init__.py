"""Surveys of a user's own files, and the first recipes that `heedful init` proposes for them."""
