"""Run folders, looked at from outside: listed, checked, compared, and freed of checkpoints that nothing needs."""
