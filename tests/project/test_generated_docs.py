"""What is generated in docs/ is what would be generated now."""

import json
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from harness.report.catalogues import pages, write
from scenarios.loading import CATALOGUE

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["rules.md", "faults.md", "scenarios.md", "dialects.md"])
def test_a_page_is_up_to_date(name: str) -> None:
    """If this fails: python -m harness.report.catalogues."""
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name]


@pytest.mark.parametrize("name", ["scenario.schema.json", "report.schema.json", "subject-protocol.schema.json"])
def test_a_schema_is_up_to_date(name: str) -> None:
    """If this fails: python -m harness.report.catalogues."""
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name]


def test_everything_generated_is_written(tmp_path: Path) -> None:
    write(tmp_path)
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == pages()


@pytest.fixture(scope="module")
def scenario_schema() -> jsonschema.Draft202012Validator:
    schema = json.loads((DOCS / "scenario.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_story_of_the_catalogue_keeps_to_the_published_schema(
    path: Path, scenario_schema: jsonschema.Draft202012Validator
) -> None:
    scenario_schema.validate(YAML(typ="safe").load(path.read_text(encoding="utf-8")))


def test_the_published_schema_refuses_a_misspelt_key(scenario_schema: jsonschema.Draft202012Validator) -> None:
    story = {"name": "a", "summary": "b", "steps": [{"at": 0, "do": "submit", "operation": "op-1"}]}
    assert scenario_schema.is_valid(story)
    assert not scenario_schema.is_valid({**story, "sumary": "b"})
