"""The pytest plugin, as a suite uses it."""

import sys

import pytest

pytest_plugins = ["pytester"]

MARKED = """
    import pytest

    @pytest.mark.jobsworth(subject="{subject}", scenarios=["happy-path", "lost-create-response"])
    def test_client():
        pass
"""
REFERENCE = "harness.subjects.reference:build"
BROKEN = "tests.broken_clients.new_token_per_retry:build"
FIXTURE = """
    from harness.subjects.reference import build

    def test_client(jobsworth):
        result = jobsworth({what})
        assert result.outcome.scenario == jobsworth.scenario
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(pytestconfig.rootpath))
    monkeypatch.syspath_prepend(str(pytestconfig.rootpath))
    # Without the plugin of schemathesis, which nothing here needs, a start takes a tenth of the time.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:schemathesis")
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = --strict-markers -p no:cacheprovider")
    return pytester


def test_a_marked_test_becomes_one_for_each_scenario(suite: pytest.Pytester) -> None:
    suite.makepyfile(MARKED.format(subject=REFERENCE))
    result = suite.runpytest_subprocess("-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*::test_client[[]happy-path[]] PASSED*", "*::test_client[[]lost-create-response[]] *"]
    )


def test_a_finding_is_the_message_with_its_facts_and_the_line_that_makes_it_again(suite: pytest.Pytester) -> None:
    suite.makepyfile(MARKED.format(subject=BROKEN))
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "fail: lost-create-response (simulated): broken: *one-job-per-operation*",
            "one-job-per-operation (W1.1): operation op-1 has 2 jobs: *",
            "  #* s  provider  takes the create of op-1 as job_*",
            f"reproduce: jobsworth replay lost-create-response {BROKEN} --mode simulated --seed 0",
        ]
    )
    result.stdout.no_fnmatch_line("*harness/pytest_plugin.py*")


def test_the_fixture_takes_a_factory_and_gives_the_result(suite: pytest.Pytester) -> None:
    suite.makepyfile(FIXTURE.format(what="build"))
    result = suite.runpytest_subprocess("-k", "happy-path or crash-before-first-poll")
    result.assert_outcomes(passed=2, deselected=result.parseoutcomes()["deselected"])


def test_scenarios_that_do_not_apply_are_skipped_with_the_reason(suite: pytest.Pytester) -> None:
    suite.makepyfile(FIXTURE.format(what=f"[{sys.executable!r}, '-c', 'pass'], one_shot=True"))
    result = suite.runpytest_subprocess("-rs", "-k", "stale-lease-at-the-end")
    assert result.parseoutcomes()["skipped"] == 1
    result.stdout.fnmatch_lines(["SKIPPED*not applicable: it has several workers on one store*"])


def test_what_a_simulated_client_cannot_be_told_is_skipped_too(suite: pytest.Pytester) -> None:
    suite.makepyfile(FIXTURE.format(what="'tests.correct_clients.polls_slowly:build'"))
    result = suite.runpytest_subprocess("-rs", "-k", "a-person-decides or crash-before-first-poll or happy-path")
    assert {**result.parseoutcomes(), "deselected": 0} == {"passed": 1, "skipped": 2, "deselected": 0}
    result.stdout.fnmatch_lines(["SKIPPED*not applicable: it strikes at a durable write*"])


def test_a_subject_that_cannot_be_put_under_test_fails_and_says_why(suite: pytest.Pytester) -> None:
    suite.makepyfile(MARKED.format(subject="no.such:thing"))
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*'no.such:thing': no module 'no'*"])


def test_the_seed_of_the_command_line_is_used(suite: pytest.Pytester) -> None:
    suite.makepyfile(MARKED.format(subject=BROKEN))
    result = suite.runpytest_subprocess("--jobsworth-seed", "7")
    result.stdout.fnmatch_lines(["reproduce: * --seed 7"])


def test_a_marker_without_a_subject_is_a_mistake(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest\n\n@pytest.mark.jobsworth\ndef test_client():\n    pass\n")
    result = suite.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*@pytest.mark.jobsworth(subject, *"])


def test_it_works_with_xdist_and_with_last_failed(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\nfilterwarnings = error\n")
    suite.makepyfile(MARKED.format(subject=BROKEN))
    suite.runpytest_subprocess("-n", "2").assert_outcomes(passed=1, failed=1)
    result = suite.runpytest_subprocess("--lf", "-v")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*::test_client[[]lost-create-response[]] FAILED*"])


def test_a_suite_that_does_not_use_it_does_not_load_the_harness(suite: pytest.Pytester) -> None:
    suite.makepyfile("import sys\n\ndef test_nothing():\n    assert 'harness.runner' not in sys.modules\n")
    suite.runpytest_subprocess().assert_outcomes(passed=1)


MISUSED = {
    "scenarios=['happy-pth']": "happy-pth: no such scenario, did you mean 'happy-path'*",
    "scenarios=['happy-path'], mode='simulatd'": "reference cannot run simulatd; it can *",
    "scenarios=['happy-path'], mode='patched'": "reference cannot run patched; it can *",
    "scenarios=['happy-path'], rules=99": "there is no edition 99 of the rules; one of *",
    "scenarios=['happy-path'], one_shot=True": "a one-shot subject is a command: *",
}


def test_what_a_marker_asks_for_and_cannot_be_had_fails_without_a_traceback(suite: pytest.Pytester) -> None:
    marked = "@pytest.mark.jobsworth(subject='reference', {})\ndef test_{}():\n    pass\n"
    more = (
        "@pytest.mark.jobsworth(subject=5, scenarios=['happy-path'])\ndef test_five():\n    pass\n"
        "@pytest.mark.jobsworth(subject=[], scenarios=['happy-path'])\ndef test_empty():\n    pass\n"
    )
    tests = [marked.format(arguments, number) for number, arguments in enumerate(MISUSED)]
    suite.makepyfile("import pytest\n" + "\n".join([*tests, more]))
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=len(MISUSED) + 2)  # skipped would be silence
    for reason in (*MISUSED.values(), "5 is no subject: *", "[[][]] is no subject: *"):
        result.stdout.fnmatch_lines_random([reason])
    result.stdout.no_fnmatch_line("*harness/*.py:*")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("subject='reference', scenarios=[]", "scenarios=[[][]]: a list of names and files is wanted*"),
        ("subject='reference', scenarios='happy-path'", "scenarios='happy-path': a list of names and files is wanted*"),
        ("subject='reference', scenario=['happy-path']", "*: got () and {'subject': 'reference', 'scenario': *"),
    ],
)
def test_a_marker_without_the_form_is_an_error_without_a_traceback(
    suite: pytest.Pytester, arguments: str, reason: str
) -> None:
    suite.makepyfile(f"import pytest\n\n@pytest.mark.jobsworth({arguments})\ndef test_client():\n    pass\n")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([reason])
    result.stdout.no_fnmatch_line("*harness/*.py:*")


def test_a_test_that_never_calls_the_fixture_has_proved_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_client(jobsworth):\n    pass\n")
    result = suite.runpytest_subprocess("-k", "happy-path")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["the test asks for the fixture 'jobsworth' and never calls it: nothing was run"])


def test_a_coroutine_that_calls_is_told_why_it_cannot(suite: pytest.Pytester) -> None:
    suite.makepyfile("""
        import asyncio

        def test_client(jobsworth):
            async def main():
                jobsworth("reference", mode="simulated")
            asyncio.run(main())
    """)
    result = suite.runpytest_subprocess("-k", "happy-path")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["called from a coroutine: a run has an event loop of its own; *"])


def test_a_seed_is_not_negative(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("--jobsworth-seed", "-1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
