"""The ways to run a client under test: simulated in process, or as a process of its own."""

from harness.stage import SubjectError
from harness.subjects.resolve import REFERENCE, Subject, resolve

__all__ = ["REFERENCE", "Subject", "SubjectError", "resolve"]
