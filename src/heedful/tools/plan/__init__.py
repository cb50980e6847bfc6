"""Plan of a run: memory, FLOPs, time, checkpoints and data, estimated before anything is trained."""

from heedful.tools.plan.plan import Hardware, Plan, make_plan

__all__ = ["Hardware", "Plan", "make_plan"]
