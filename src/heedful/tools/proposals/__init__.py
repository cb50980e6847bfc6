"""Surveys of a user's files, and the first recipes that `heedful init` proposes for them."""
