"""``docs/kill-matrix.md`` is complete, and what it says is so: without making all of its runs again.

If a test here fails because clients, rules or stories have changed: make kill-matrix.
"""

import importlib
import re
from functools import reduce
from typing import Final

import pytest

from harness.rules.registry import all_rules
from harness.runner import run
from harness.subjects import resolve
from tests.kill_matrix import PAGE, SAFEGUARDS, clients, module, safeguard_rows, stories

TEXT: Final = PAGE.read_text(encoding="utf-8")


def rows() -> dict[str, dict[str, tuple[str, ...]]]:
    """By client and rule: the stories that the page names."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    client = ""
    matrix = TEXT.split("## Client, rule, scenario")[1].split("## Safeguards")[0]
    for line in matrix.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or cells[1] in {"rule", "---"}:
            continue
        client = (re.findall(r"`(\w+)`", cells[0]) or [client])[0]
        names = re.sub(r" and \d+ more", "", cells[2]).replace("*", "").split(", ")
        found.setdefault(client, {})[cells[1].strip("`")] = tuple(filter(None, names))
    return found


ROWS: Final = rows()


def test_every_broken_client_is_on_the_page_and_no_other() -> None:
    assert sorted(ROWS) == clients()


def test_every_rule_kills_a_client() -> None:
    killed = {rule for caught in ROWS.values() for rule, names in caught.items() if names}
    assert killed == {info.id for info in all_rules()}


def test_the_figures_are_those_of_today() -> None:
    assert f"{len(clients())} broken clients, {len(all_rules())} rules, {len(stories())} stories." in TEXT


@pytest.mark.parametrize("client", clients())
def test_a_client_is_caught_as_the_page_says(client: str) -> None:
    """By the rule it is named for, listed first, and by each other one that is listed, in the first story named."""
    assert next(iter(ROWS[client])) == module(client).CAUGHT_BY
    subject = resolve(f"tests.broken_clients.{client}:build")
    for names in {names[0] for names in ROWS[client].values()}:
        listed = {rule for rule, told in ROWS[client].items() if told and told[0] == names}
        caught = {finding.rule for finding in run(stories()[names], subject).outcome.findings}
        assert listed <= caught


@pytest.mark.parametrize("story", stories())
def test_the_reference_client_is_caught_in_no_story_of_the_page(story: str) -> None:
    assert run(stories()[story], resolve()).outcome.findings == ()


def test_the_second_table_is_what_the_code_says() -> None:
    for row in safeguard_rows():
        assert f"| {' | '.join(row)} |" in TEXT


@pytest.mark.parametrize("where", sorted({where for where, _ in SAFEGUARDS.values()}))
def test_a_safeguard_is_where_the_page_says(where: str) -> None:
    parts = where.split(".")
    for length in range(len(parts), 0, -1):
        try:
            home = importlib.import_module(".".join(("reference_client", *parts[:length])))
        except ModuleNotFoundError:
            continue
        assert reduce(getattr, parts[length:], home) is not None
        return
    pytest.fail(f"there is no reference_client.{where}")


def test_without_a_safeguard_it_is_the_reference_client_that_breaks() -> None:
    for _, client in SAFEGUARDS.values():
        source = (PAGE.parent.parent / "tests" / "broken_clients" / f"{client}.py").read_text(encoding="utf-8")
        assert "build_with(" in source, client
