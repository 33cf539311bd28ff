"""A report as JUnit XML, as CI servers read it: one test case for each run."""

import re
from typing import Final

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from harness.report.machine import Report
from harness.verdict import Outcome, Verdict

__all__ = ["to_junit"]

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What an XML 1.0 document cannot hold in any way; a client may say anything."""


def to_junit(report: Report) -> str:
    """Return the report as an XML document.

    A breach is a failure, a run that proves nothing an error, a scenario that does not apply a skipped test. A known
    breach passes, with a note; one that is listed as known and is gone is a failure of a test case of its own.
    """
    suite = TestSuite(_clean(f"jobsworth {report.subject}"))
    suite.add_property("version", report.version)
    suite.add_property("seed", str(report.seed))
    for outcome in report.runs:
        suite.add_testcase(_case(outcome))
    for left_out in report.left_out:
        case = TestCase(left_out.scenario, classname=f"jobsworth.{left_out.mode}")
        case.result = [Skipped(_clean(f"not applicable: {left_out.reason}"), "not-applicable")]
        suite.add_testcase(case)
    for line in report.stale:
        case = TestCase(_clean(line), classname="jobsworth.known-failing")
        case.result = [Failure(_clean(f"{line}: take it off the list"), "stale")]
        suite.add_testcase(case)
    if not report.runs and report.verdict is Verdict.UNKNOWN:
        case = TestCase("the client can be put under test", classname="jobsworth")
        case.result = [Error(_clean(report.reason), "unknown")]
        suite.add_testcase(case)
    suite.update_statistics()  # type: ignore[no-untyped-call]
    document = JUnitXml("jobsworth")
    document.add_testsuite(suite)
    # Some servers refuse a count of skipped tests here, which update_statistics would write.
    document.tests, document.failures, document.errors = suite.tests, suite.failures, suite.errors
    written: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return written.decode()


def _case(outcome: Outcome) -> TestCase:
    case = TestCase(outcome.scenario, classname=f"jobsworth.{outcome.mode}")
    if outcome.verdict is Verdict.FAIL:
        failures: list[FinalResult] = []
        for finding in outcome.findings:
            failure = Failure(_clean(finding.message), finding.rule)
            failure.text = _clean(
                f"{finding.requirement} {finding.rule}: {finding.message}\nreproduce: {outcome.reproduce}"
            )
            failures.append(failure)
        case.result = failures
    elif outcome.verdict is Verdict.UNKNOWN:
        error = Error(_clean(outcome.reason), "unknown")
        error.text = _clean(f"{outcome.reason}\nreproduce: {outcome.reproduce}")
        case.result = [error]
    elif outcome.known_failing:
        case.system_out = _clean("\n".join(f"known: {each.rule}: {each.message}" for each in outcome.known_failing))
    return case


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
