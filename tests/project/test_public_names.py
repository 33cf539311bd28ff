"""``__all__`` says exactly what a module offers."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("fake_provider", "harness", "reference_client", "scenarios")
MODULES = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if path.name not in {"__init__.py", "__main__.py"}
)


def declared(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node, ast.Assign | ast.AnnAssign):
            assert node.value is not None
            return list(ast.literal_eval(node.value))
    return None


def defined(tree: ast.Module) -> Iterator[str]:
    """Classes and functions that a module defines itself. What a decorator enters in a registry is reached through
    that."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) or (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
        ):
            yield node.name


def bound(tree: ast.Module) -> set[str]:
    names = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(each.asname or each.name).partition(".")[0] for each in node.names}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_all_is_there_sorted_and_exact(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    listed = declared(tree)
    assert listed is not None, "the module has no __all__"
    assert len(set(listed)) == len(listed)
    assert set(listed) <= bound(tree), "a name that is not there"
    if listed:  # rules and fault kinds are reached through their registries: such modules may offer no name at all
        public = {name for name in defined(tree) if not name.startswith("_")}
        assert public <= set(listed), "a public class or function that is not listed"
