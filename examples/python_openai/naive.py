"""A client of the Batch API as people write it on the ``openai`` package: upload, create, poll, download.

    jobsworth check examples.python_openai.naive:build --mode patched

The package retries a create whose answer got lost, twice, and sends nothing by which the provider could tell that it is
the same create: each retry is another batch.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from openai import OpenAI, OpenAIError

from harness.patching import PatchedHost, patched
from harness.subject import Claim

ITEMS = 5


class Naive:
    """One blocking function for each operation."""

    def __init__(self, host: PatchedHost) -> None:
        self._timing = host.timing
        self._openai = OpenAI(
            api_key=host.token, base_url=f"{host.base_url}/v1", timeout=host.timing["request_timeout_s"]
        )
        self._claims: dict[str, Claim] = {}

    def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        self._claims[operation] = Claim(operation=operation, state="create_pending")
        try:
            self._claims[operation] = self._finished(operation, request)
        except OpenAIError as error:
            self._claims[operation] = Claim(operation=operation, state="failed", explanation=str(error))

    def report(self) -> list[Claim]:
        return list(self._claims.values())

    def _finished(self, operation: str, request: Mapping[str, Any]) -> Claim:
        lines = [
            {"custom_id": f"{operation}-{item}", "method": "POST", "url": "/v1/responses", "body": dict(request)}
            for item in range(ITEMS)
        ]
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        source = self._openai.files.create(file=("requests.jsonl", content), purpose="batch")
        batch = self._openai.batches.create(
            input_file_id=source.id,
            endpoint="/v1/responses",
            completion_window="24h",
            metadata={"client_reference": operation},
        )
        while batch.status not in {"completed", "failed", "cancelled", "expired"}:
            time.sleep(self._timing["poll_first_s"])
            batch = self._openai.batches.retrieve(batch.id)
        if batch.status != "completed" or batch.output_file_id is None:
            return Claim(operation=operation, state="failed", remote_job=batch.id)
        self._openai.files.content(batch.output_file_id)
        return Claim(operation=operation, state="succeeded", remote_job=batch.id)


@patched(dialect="openai-batch")
def build(host: PatchedHost) -> Naive:
    """Build the client for one run."""
    return Naive(host)
