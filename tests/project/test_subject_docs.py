"""The pages for those who put a client under test say what the code does."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import click
import jsonschema
import pytest
from ruamel.yaml import YAML

from harness.cli import cli
from harness.known_failing import read
from harness.stage import Notebook, Terms
from harness.subject import REST_STATES, Capability
from harness.subjects import endings, groups, lines, one_shot, process
from harness.subjects.lines import BadLine, read_line
from scenarios.loading import load_catalogue

DOCS = Path(__file__).parents[2] / "docs"
PROTOCOL = (DOCS / "subject-protocol.md").read_text(encoding="utf-8")
ONE_SHOT = (DOCS / "one-shot.md").read_text(encoding="utf-8")
CI = (DOCS / "ci.md").read_text(encoding="utf-8")
SCHEMA = json.loads((DOCS / "subject-protocol.schema.json").read_text(encoding="utf-8"))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def part(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{name}"}]})


# -- the session protocol


@pytest.mark.parametrize("line", [line for block in blocks(PROTOCOL, "json") for line in block.splitlines()])
def test_each_line_on_the_page_is_of_the_protocol(line: str) -> None:
    if '"command"' in line:
        part("ToSubject").validate(json.loads(line))
    else:
        read_line(line.encode())
        part("FromSubject").validate(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        '{"reply":1,"ok":true,"capabilities":["webhooks","workers"]}',
        '{"reply":1,"ok":true,"capabilities":["flying"]}',
        '{"reply":1,"ok":true,"claims":[{"operation":"op-1","state":"succeeded","records":3}]}',
        '{"reply":1,"ok":true,"claims":[{"operation":"op-1","state":"done"}]}',
        '{"reply":1,"ok":true,"claims":[{"operation":"op-1"}]}',
        '{"reply":"1","ok":true}',
        '{"reply":1}',
        '{"note":"recording","operation":"op-1","after":"accepted","checkpoint":4}',
        '{"note":"recording","operation":"op-1","after":"accepted","checkpoint":"4"}',
        '{"note":"lease","operation":"op-1","what":"taken","fence":1}',
        '{"note":"other"}',
        "[]",
    ],
)
def test_schema_and_reader_agree_on_a_line(line: str) -> None:
    try:
        read_line(line.encode())
        is_read = True
    except BadLine:
        is_read = False
    assert part("FromSubject").is_valid(json.loads(line)) is is_read


def test_every_command_field_and_capability_is_on_the_page() -> None:
    for command in get_args(lines._AnyCommand):
        assert (
            f"`{command.__struct_config__.tag}`" in PROTOCOL
            or f'"command":"{command.__struct_config__.tag}"' in PROTOCOL
        )
    for name in lines.Start.__struct_fields__[1:]:
        assert f"`{name}`" in PROTOCOL
    for capability in get_args(Capability):
        assert f"| `{capability}` |" in PROTOCOL


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    patience = process.Patience()
    for words in (
        f"**{lines.PROTOCOL}**",
        f"`start` within {patience.start_s:g} s",
        f"`report` within {patience.reply_s:g} s, or another command within {patience.command_s:g} s",
        f"writes {process.MAX_BAD_LINES} such lines, a line over a mebibyte, or {groups.MAX_OUTPUT_BYTES >> 20} MiB",
        f"the last {groups.MAX_LOG_BYTES >> 10} KiB are kept",
    ):
        assert words in PROTOCOL
    assert process.MAX_LINE_BYTES == 1 << 20


# -- one-shot commands


def test_every_variable_is_on_the_page_and_no_other(tmp_path: Path) -> None:
    timing = dict.fromkeys(load_catalogue()["happy-path"].timing.model_dump(), 1.0)
    terms = Terms(contract={}, timing=timing, authorization="Bearer x", webhook_secrets=(), seed=0)
    stage = one_shot.OneShotStage(["true"], terms=terms, notebook=Notebook(lambda _: None, ()))
    stage._urls["w1"] = "http://127.0.0.1:1"
    given = set(stage._environment("w1", "op-1", tmp_path / "request.json"))
    stage._tidy()
    table = ONE_SHOT.partition("## What it is given")[2].partition("## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall("`(.+?)`", row)} == given


def test_every_state_and_the_status_for_again_are_on_the_page() -> None:
    states = ONE_SHOT.partition("The states are those")[2].partition("A line that begins")[0]
    assert set(re.findall("`(.+?)`", states)) == REST_STATES
    assert f"| {endings.AGAIN} |" in ONE_SHOT
    for line in blocks(ONE_SHOT, "text")[0].splitlines():
        assert endings.read_claim("op-1", line, 0 if "succeeded" in line else 1) is not None


# -- pipelines


def commands(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [each for item in value.values() for each in commands(item)]
    if isinstance(value, list):
        return [each for item in value for each in commands(item)]
    return [value] if isinstance(value, str) and value.startswith("jobsworth ") else []


def test_the_pipelines_are_yaml_and_their_commands_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, actions, gitlab = (YAML(typ="safe").load(block) for block in blocks(CI, "yaml"))
    assert set(actions) == {"name", "on", "permissions", "jobs"}
    assert set(gitlab["jobsworth"]) >= {"image", "script", "artifacts"}
    found = commands(actions) + commands(gitlab)
    assert len(found) == 2
    check = cli.commands["check"]
    monkeypatch.chdir(tmp_path)
    for command in found:
        words = shlex.split(command)
        assert words[:2] == ["jobsworth", "check"]
        context = check.make_context("check", words[2:], resilient_parsing=False)
        assert context.params["edition"] == 1
        assert isinstance(context, click.Context)
    (tmp_path / "known.yaml").write_text(blocks(CI, "yaml")[0], encoding="utf-8")
    assert read(tmp_path / "known.yaml", load_catalogue()).keys() == known.keys()


def test_every_option_on_the_page_is_one() -> None:
    options = {name for each in cli.commands["check"].params for name in each.opts}
    table = CI.partition("| option |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(--[a-z-]+)", table)) <= options
