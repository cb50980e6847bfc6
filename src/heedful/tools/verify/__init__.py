"""Verification of a trained model: comparisons of results that should be equal, such as with and without padding."""

from heedful.tools.verify.checks import CHECKS, Check
from heedful.tools.verify.subjects import Subject, subject_of

__all__ = ["CHECKS", "Check", "Subject", "subject_of"]
