"""What a place in a scenario document may hold, read from the models: for error messages that name the valid keys."""

from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel

__all__ = ["members", "model_at", "without_tags"]

_Location = tuple[str | int, ...]

_DISCRIMINATORS: Final = ("do", "kind")


def model_at(root: type[BaseModel], where: _Location) -> type[BaseModel] | None:
    """The model that describes the mapping at ``where`` (a pydantic error location), or None if there is none."""
    found: Any = root
    for part in where:
        found = _inside(found, part)
        if found is None:
            return None
    found = _plain(found)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def members(model: type[BaseModel], key: str) -> tuple[type[BaseModel], ...]:
    """The models that the items of the list ``model.key`` may have, in the order in which they are declared."""
    union = _plain(get_args(model.model_fields[key].annotation)[0])
    return tuple(map(_plain, get_args(union)))


def without_tags(document: object, where: _Location) -> _Location:
    """``where`` without the parts pydantic adds for the chosen member of a union: the path in the document itself."""
    path: list[str | int] = []
    node = document
    for part in where:
        if isinstance(node, dict) and part not in node and part in [node.get(key) for key in _DISCRIMINATORS]:
            continue
        path.append(part)
        try:
            node = node[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            node = None
    return tuple(path)


def _inside(shape: Any, part: str | int) -> Any:
    shape = _plain(shape)
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        field = shape.model_fields.get(str(part))
        return None if field is None else field.annotation
    origin, inner = get_origin(shape), get_args(shape)
    if origin is tuple and isinstance(part, int):
        return inner[0]
    if origin is dict:
        return inner[1]
    if origin in {Union, UnionType}:
        return next((member for member in map(_plain, inner) if _tag(member) == part), None)
    return None


def _plain(shape: Any) -> Any:
    while get_origin(shape) is Annotated:
        shape = get_args(shape)[0]
    members = [member for member in get_args(shape) if member is not type(None)]
    if get_origin(shape) in {Union, UnionType} and len(members) == 1:
        return _plain(members[0])
    return shape


def _tag(model: Any) -> str | None:
    for key in _DISCRIMINATORS:
        field = getattr(model, "model_fields", {}).get(key)
        if field is not None and get_origin(field.annotation) is Literal:
            return str(get_args(field.annotation)[0])
    return None
