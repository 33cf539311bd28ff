"""Reading the files that batches are made of: a multipart form with one request a line in it."""

from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Final

import msgspec

from fake_provider.calls import Call, Problem, Refused, Upload
from fake_provider.wire import MAX_BODY_BYTES, Request

__all__ = ["read_upload"]

_MOST_ITEMS: Final = 50_000  # as published


def read_upload(request: Request) -> Call:
    """Understand an upload. A file whose lines cannot be a batch is taken all the same, with what is wrong with it."""
    if len(request.body) > MAX_BODY_BYTES:
        return Call(refusal=Refused(problem=Problem.TOO_LARGE, detail=f"a body has at most {MAX_BODY_BYTES} bytes"))
    form = _read_form(request)
    if "file" not in form or "purpose" not in form:
        detail = "an upload is multipart/form-data with the parts file and purpose"
        return Call(refusal=Refused(problem=Problem.INVALID_REQUEST, detail=detail))
    content, purpose = _payload(form["file"]), _payload(form["purpose"]).decode(errors="replace")
    items, complaint = _read_lines(content) if purpose == "batch" else ((), "the file's purpose is not batch")
    name = form["file"].get_filename() or "upload"
    return Upload(name=name, purpose=purpose, content=content, items=items, complaint=complaint)


def _read_form(request: Request) -> dict[str, Message]:
    """Return the parts of a multipart body by name; none where it is no such thing."""
    kind = request.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/form-data") or "\r" in kind or "\n" in kind:
        return {}
    head = f"Content-Type: {kind}\r\n\r\n".encode("latin-1", errors="replace")
    whole = BytesParser(policy=HTTP).parsebytes(head + request.body)
    parts = whole.get_payload() if whole.is_multipart() else []
    named: dict[str, Message] = {}
    for part in parts:
        if isinstance(part, Message) and part.get_content_disposition() == "form-data":
            named[str(part.get_param("name", header="content-disposition"))] = part
    return named


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _read_lines(content: bytes) -> tuple[tuple[str, ...], str | None]:
    """Return the ``custom_id`` of each request in a JSONL file, and what is wrong with the first bad line."""
    items: dict[str, None] = {}
    lines = [line for line in content.splitlines() if line.strip()]
    for number, line in enumerate(lines, start=1):
        try:
            request = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return (), f"line {number}: this line is not parseable as valid JSON"
        custom_id = request.get("custom_id") if isinstance(request, dict) else None
        if not isinstance(custom_id, str):
            return (), f"line {number}: custom_id: missing, or not a string"
        if custom_id in items:
            return (), f"line {number}: the custom_id {custom_id!r} is used already"
        if request.get("method") != "POST" or not isinstance(request.get("url"), str):
            return (), f"line {number}: a request has the method POST and a url"
        items[custom_id] = None
    if not items or len(items) > _MOST_ITEMS:
        return (), f"a batch has 1 to {_MOST_ITEMS} requests, and this file {len(items)}"
    return tuple(items), None
