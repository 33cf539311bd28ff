"""The ways to run a client under test: simulated or patched in process, as a process, or as one-shot commands."""

from harness.subjects.resolve import REFERENCE, Subject, resolve

__all__ = ["REFERENCE", "Subject", "resolve"]
