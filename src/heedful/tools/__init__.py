"""Tools for before and after training: compare, plan, verify, replay, runs, and the recipes that `init` proposes."""
