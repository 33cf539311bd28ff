"""Annotations for GitHub Actions: workflow commands on standard output, which the run's page shows at the top."""

from collections.abc import Iterator

from harness.report.machine import Report
from harness.verdict import Verdict

__all__ = ["annotations"]


def annotations(report: Report) -> Iterator[str]:
    """Each breach as an error, each run that proves nothing as a warning, one line each.

    GitHub shows the first ten of a step and keeps all of them in its log.
    """
    for outcome in report.runs:
        title = f"{outcome.scenario} ({outcome.mode})"
        for finding in outcome.findings:
            text = f"{finding.message}\n{outcome.reproduce}"
            yield _command("error", f"jobsworth: {title} breaks {finding.rule}", text)
        if outcome.verdict is Verdict.UNKNOWN:
            yield _command("warning", f"jobsworth: {title} is unknown", f"{outcome.reason}\n{outcome.reproduce}")
    for line in report.stale:
        yield _command("error", "jobsworth: known failing, and is not", f"{line}: take it off the list")
    if not report.runs:
        yield _command("error", "jobsworth: nothing was judged", report.reason)


def _command(kind: str, title: str, message: str) -> str:
    return f"::{kind} title={_escaped(title).replace(':', '%3A').replace(',', '%2C')}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
