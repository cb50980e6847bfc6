"""Verification of a trained model: compares results that should be equal, such as alone and in a batch."""

from heedful.verify.checks import CHECKS, Check
from heedful.verify.subject import Subject
from heedful.verify.subjects import subject_of

__all__ = ["CHECKS", "Check", "Subject", "subject_of"]
