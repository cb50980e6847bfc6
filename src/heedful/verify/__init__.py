"""Verification of a trained model: what must not matter to its results does not, measured on the model itself."""

from heedful.verify.checks import CHECKS, Check
from heedful.verify.subject import Subject, subject_of

__all__ = ["CHECKS", "Check", "Subject", "subject_of"]
