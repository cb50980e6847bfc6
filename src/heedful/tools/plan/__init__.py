"""Plan of a run on paper: memory, FLOPs, time, checkpoints and data, before anything is trained."""

from heedful.tools.plan.plan import Circumstances, Plan, make_plan

__all__ = ["Circumstances", "Plan", "make_plan"]
