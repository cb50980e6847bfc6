"""What `heedful init` finds in files of a newcomer, and the first recipes that it proposes for them."""
