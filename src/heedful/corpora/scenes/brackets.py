"""English scenes as constituency trees in brackets: the tree that `english` builds, with its brackets."""

from heedful.corpora.scenes.english import tree as realise

__all__ = ["ATTACHED", "SPACE", "realise"]

SPACE = " "
ATTACHED = ")"  # texts of words that follow the word before them without a space
