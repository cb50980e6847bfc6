"""Seeds, one for each thing that is drawn, so that there is no generator to save."""

import numpy as np


def seed_of(*key: int) -> int:
    """A 64-bit seed that is a pure function of its key."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
