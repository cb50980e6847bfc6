"""Plan of a run on paper: memory, FLOPs, time, checkpoints and data, before anything is trained."""

from heedful.tools.plan.plan import Hardware, Plan, make_plan

__all__ = ["Hardware", "Plan", "make_plan"]
