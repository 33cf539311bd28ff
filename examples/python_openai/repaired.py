"""The same client, repaired: still the unmodified ``openai`` package, used with what it does not do in mind.

    jobsworth check examples.python_openai.repaired:build --mode patched

- A create is sent once. The package would retry it with nothing to recognise it by, so its retries are off here.
- A create without an answer is looked for among the batches, by the reference in its metadata. What is found is taken;
  finding nothing proves nothing, so a person has to decide.
- Reads back off exponentially, with jitter, and wait as long as they are told to. What cannot be understood is read
  again, until the business has waited long enough.
- Success is claimed once the results are there, with how many items failed.
"""

import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from openai import APIConnectionError, APIStatusError, InvalidWebhookSignatureError, OpenAI, OpenAIError
from openai.types import Batch

from harness.patching import PatchedHost, patched
from harness.subject import Claim, Refused

ITEMS = 5
LONGEST_WAIT_S = 120.0
T = TypeVar("T")


class Undecided(Exception):
    """Nobody but a person can say how this goes on."""


class TimeIsUp(Exception):
    """The business does not wait any longer."""


class Repaired:
    """One blocking function for each operation."""

    def __init__(self, host: PatchedHost) -> None:
        self._timing = host.timing
        self._openai = OpenAI(
            api_key=host.token,
            base_url=f"{host.base_url}/v1",
            timeout=host.timing["request_timeout_s"],
            max_retries=0,
            webhook_secret=host.webhook_secrets[0],
        )
        self._requests: dict[str, Mapping[str, Any]] = {}
        self._claims: dict[str, Claim] = {}
        self._random = random.Random(host.worker)

    def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        if operation in self._requests:
            if self._requests[operation] != request:
                raise Refused(f"{operation} exists with another request; a change needs a new operation")
            return
        self._requests[operation] = request
        Operation(self._openai, operation, self._timing, self._random, self._claims).see_through(request)

    def report(self) -> list[Claim]:
        return list(self._claims.values())

    def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        """Believe no webhook that is not signed; the batch's own status says the rest at its next read."""
        try:
            self._openai.webhooks.unwrap(body, headers)
        except (InvalidWebhookSignatureError, ValueError):
            return 400
        return 200


class Operation:
    """What becomes of one operation."""

    def __init__(
        self,
        openai: OpenAI,
        name: str,
        timing: Mapping[str, float],
        draw: random.Random,
        claims: dict[str, Claim],
    ) -> None:
        trace = hashlib.sha256(name.encode()).hexdigest()
        self._openai = openai.with_options(default_headers={"traceparent": f"00-{trace[:32]}-{trace[32:48]}-01"})
        self._name = name
        self._timing = timing
        self._random = draw
        self._claims = claims
        self._began = time.monotonic()

    def see_through(self, request: Mapping[str, Any]) -> None:
        self._claim("create_pending")
        batch: Batch | None = None
        try:
            batch = self._created(request)
            self._claim("observing", batch)
            batch = self._ended(batch)
            if batch.status == "completed":
                self._claim("result_collecting", batch)
                self._collect(batch)
            else:
                self._claim("cancelled" if batch.status == "cancelled" else "failed", batch)
        except Undecided as doubt:
            self._claim("human_decision_required", batch, explanation=str(doubt))
        except TimeIsUp as doubt:
            self._claim("result_timed_out", batch, explanation=str(doubt))

    def _claim(self, state: str, batch: Batch | None = None, **more: Any) -> None:
        remote_job = batch.id if batch is not None else None
        self._claims[self._name] = Claim(operation=self._name, state=state, remote_job=remote_job, **more)

    # -- create

    def _created(self, request: Mapping[str, Any]) -> Batch:
        lines = [
            {"custom_id": f"{self._name}-{item}", "method": "POST", "url": "/v1/responses", "body": dict(request)}
            for item in range(ITEMS)
        ]
        content = "".join(json.dumps(line) + "\n" for line in lines).encode()
        # An upload that comes twice costs a file and no batch: this may be tried again.
        source = self._insist(lambda: self._openai.files.create(file=("requests.jsonl", content), purpose="batch"))
        for attempt in range(20):
            try:
                batch = self._openai.batches.create(
                    input_file_id=source.id,
                    endpoint="/v1/responses",
                    completion_window="24h",
                    metadata={"client_reference": self._name},
                )
            except APIStatusError as error:
                if error.status_code == 429:  # it was not even looked at
                    self._wait(attempt, error)
                    continue
                if error.status_code < 500 and error.status_code not in {408, 409}:
                    raise Undecided(f"the create was refused: {error.message}") from error
                return self._found(f"the create was answered {error.status_code}")
            except (OpenAIError, ValueError) as error:
                return self._found(f"the create has no answer ({type(error).__name__})")
            if not self._is_batch(batch):
                return self._found("the create was answered with something that is no batch")
            return batch
        raise Undecided("every create was refused as one too many")

    def _found(self, what_happened: str) -> Batch:
        """Look for the batch of a create whose answer is not known."""
        self._claim("create_unknown")
        page = self._insist(lambda: self._openai.batches.list(limit=100).data)
        mine = [batch for batch in page if (batch.metadata or {}).get("client_reference") == self._name]
        if len(mine) != 1:
            raise Undecided(
                f"{what_happened}, and {len(mine) or 'none'} of the batches is this operation's, which proves nothing"
            )
        return mine[0]

    # -- observe

    def _ended(self, batch: Batch) -> Batch:
        seen, attempt = batch, 0
        while seen.status not in {"completed", "failed", "cancelled", "expired"}:
            known = seen.status
            self._wait(attempt)
            seen = self._insist(lambda: self._openai.batches.retrieve(batch.id), self._is_batch)
            attempt = 0 if seen.status != known else attempt + 1
        if seen.status == "expired":
            raise Undecided("the batch is said to have expired, which does not say what was done of it")
        return seen

    @staticmethod
    def _is_batch(answer: Any) -> bool:
        return isinstance(answer, Batch) and isinstance(answer.id, str) and isinstance(answer.status, str)

    # -- collect

    def _collect(self, batch: Batch) -> None:
        counts = batch.request_counts
        files = [name for name in (batch.output_file_id, batch.error_file_id) if name is not None]
        read = [self._insist(lambda name=name: self._rows(name), bool) for name in files]  # type: ignore[misc]
        rows = [row for part in read for row in part[1]]
        outcomes = {row.get("custom_id"): (row.get("response") or {}).get("status_code") for row in rows}
        good = sum(status == 200 for status in outcomes.values())
        if counts is None or not read or len(outcomes) != ITEMS or good != counts.completed or len(rows) != ITEMS:
            self._claim("result_validation_failed", batch, explanation=f"{len(rows)} rows, {good} good, for {counts}")
            return
        self._claim(
            "succeeded", batch, result_sha256=read[0][0], records=len(outcomes), failed_items=len(outcomes) - good
        )

    def _rows(self, file: str) -> tuple[str, list[dict[str, Any]]]:
        content = self._openai.files.content(file).content
        try:
            rows = [json.loads(line) for line in content.splitlines()]
        except ValueError:
            rows = []
        return hashlib.sha256(content).hexdigest(), rows

    # -- patience

    def _insist(self, call: Callable[[], T], is_good: Callable[[T], object] = lambda _: True) -> T:
        """Repeat a call that changes nothing until its answer is one."""
        attempt = 0
        while True:
            error: OpenAIError | ValueError
            try:
                answer = call()
                if is_good(answer):
                    return answer
                self._wait(attempt)
            except APIConnectionError as error:
                self._wait(attempt, error)
            except APIStatusError as error:
                if error.status_code not in {404, 408, 409, 410, 429} and error.status_code < 500:
                    raise Undecided(f"refused: {error.message}") from error
                self._wait(attempt, error)
            except (OpenAIError, ValueError):
                self._wait(attempt)
            attempt += 1

    def _wait(self, attempt: int, error: OpenAIError | None = None) -> None:
        first, cap = self._timing["poll_first_s"], self._timing["poll_cap_s"]
        seconds = min(cap, first * 2**attempt) * (1 + self._timing["poll_jitter"] * self._random.random())
        if isinstance(error, APIStatusError):
            told = error.response.headers.get("retry-after", "")
            seconds = max(seconds, float(told) if told.isascii() and told.isdigit() else 0.0)
        if time.monotonic() - self._began + seconds > max(self._timing["result_deadline_s"], LONGEST_WAIT_S):
            raise TimeIsUp("the result did not come in time; the batch may still end")
        time.sleep(seconds)


@patched(dialect="openai-batch", capabilities=["webhooks"])
def build(host: PatchedHost) -> Repaired:
    """Build the client for one run."""
    return Repaired(host)
