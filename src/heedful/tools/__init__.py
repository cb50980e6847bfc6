"""Tools around training: compare, plan, verify, replay, runs, doctor, and the recipes that `init` proposes."""
