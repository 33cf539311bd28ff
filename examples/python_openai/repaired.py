"""The same client, repaired: still the unmodified ``openai`` package, used with what it does not do in mind.

    jobsworth check examples.python_openai.repaired:build --mode patched

- A create is sent once. The package would retry it with nothing to recognise it by, so its retries are off here.
- A create without an answer is looked for among the batches, by the reference in its metadata. What is found is taken;
  finding nothing proves nothing, so a person has to decide.
- Reads back off exponentially, with jitter, and wait as long as they are told to, until the business has waited long
  enough. What cannot be understood is read again.
- Redirects are not followed: results come from where the credential is for.
- Success is claimed once the results are there, with how many items failed.
"""

import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from openai import (
    APIStatusError,
    DefaultHttpxClient,
    InvalidWebhookSignatureError,
    OpenAI,
    OpenAIError,
)
from openai._legacy_response import LegacyAPIResponse
from openai.types import Batch

from harness.patching import PatchedHost, patched
from harness.subject import Claim, Refused

ITEMS = 5
MOST_ATTEMPTS = 8
T = TypeVar("T")


class Undecided(Exception):
    """Nobody but a person can say how this goes on."""


class TimeIsUp(Exception):
    """The business does not wait any longer."""


class Repaired:
    """One blocking function for each operation."""

    def __init__(self, host: PatchedHost) -> None:
        self._host = host
        self._openai = OpenAI(
            api_key=host.token,
            base_url=f"{host.base_url}/v1",
            timeout=host.timing["request_timeout_s"],
            max_retries=0,
            http_client=DefaultHttpxClient(follow_redirects=False),
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
        Operation(self._openai, operation, self._host, self._random, self._claims).see_through(request)

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
        host: PatchedHost,
        draw: random.Random,
        claims: dict[str, Claim],
    ) -> None:
        trace = hashlib.sha256(name.encode()).hexdigest()
        self._openai = openai.with_options(default_headers={"traceparent": f"00-{trace[:32]}-{trace[32:48]}-01"})
        self._name = name
        self._can_look = host.contract["lookup"]["by"] != "none"
        self._timing = host.timing
        self._random = draw
        self._claims = claims
        self._deadline = time.monotonic() + host.timing["result_deadline_s"]

    def see_through(self, request: Mapping[str, Any]) -> None:
        self._claim("create_pending")
        batch: Batch | None = None
        try:
            batch = self._created(request)
            self._claim("observing", batch)
            batch = self._ended(batch)
        except Undecided as doubt:
            self._claim("human_decision_required", batch, explanation=str(doubt))
        except TimeIsUp as doubt:
            # Without a batch it is the create of which nothing is known.
            state = "result_timed_out" if batch is not None else "human_decision_required"
            self._claim(state, batch, explanation=str(doubt))
        else:
            if batch.status == "completed":
                self._collect(batch)
            else:
                done = self._done_until_then(batch)
                self._claim("cancelled" if batch.status == "cancelled" else "failed", batch, explanation=done)

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
        for attempt in range(MOST_ATTEMPTS):
            try:
                batch = self._openai.batches.create(
                    input_file_id=source.id,
                    endpoint="/v1/responses",
                    completion_window="24h",
                    metadata={"client_reference": self._name},
                )
            except APIStatusError as error:
                if error.status_code == 429:  # it was not even looked at
                    self._wait(attempt, error.response.headers)
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
        if not self._can_look:
            raise Undecided(f"{what_happened}, and the provider offers no way to look for it")
        page = self._insist(lambda: self._openai.batches.list(limit=100).data)
        mine = [batch for batch in page if (batch.metadata or {}).get("client_reference") == self._name]
        if len(mine) != 1:
            raise Undecided(
                f"{what_happened}, and {len(mine) or 'none'} of the batches is this operation's, which proves nothing"
            )
        return mine[0]

    # -- observe

    def _ended(self, batch: Batch) -> Batch:
        attempt, told = 1, None
        while True:
            self._wait(attempt, told)
            answer = self._insist(lambda: self._openai.batches.with_raw_response.retrieve(batch.id))
            seen, told = self._parsed(answer), answer.headers
            about_it = seen is not None and seen.id == batch.id  # else it is about another one: a cache mixes two up
            if seen is not None and about_it and seen.status in {"completed", "failed", "expired", "cancelled"}:
                return seen
            attempt += 1

    def _parsed(self, answer: LegacyAPIResponse[Batch]) -> Batch | None:
        try:
            batch = answer.parse()
        except (OpenAIError, ValueError):
            return None
        return batch if self._is_batch(batch) else None

    @staticmethod
    def _is_batch(answer: Any) -> bool:
        return isinstance(answer, Batch) and bool(answer.id) and bool(answer.status)

    # -- collect

    def _collect(self, batch: Batch) -> None:
        self._claim("result_collecting", batch)
        files = [name for name in (batch.output_file_id, batch.error_file_id) if name is not None]
        self._deadline = max(self._deadline, time.monotonic() + self._timing["result_deadline_s"])
        try:
            contents = [self._insist(lambda name=name: self._openai.files.content(name).content) for name in files]  # type: ignore[misc]
        except (Undecided, TimeIsUp) as doubt:
            self._claim("result_unavailable", batch, explanation=f"the batch is completed, and its files: {doubt}")
            return
        outcomes = [outcome for content in contents for outcome in self._outcomes(content)]
        good, counts = sum(status == 200 for _, status in outcomes), batch.request_counts
        whole = {f"{self._name}-{item}" for item in range(ITEMS)} == {name for name, _ in outcomes}
        if not whole or len(outcomes) != ITEMS or counts is None or good != counts.completed:
            why = f"{len(outcomes)} rows, {good} of them good, where the batch counts {counts}"
            self._claim("result_validation_failed", batch, explanation=why)
            return
        digest = hashlib.sha256(contents[0]).hexdigest()
        self._claim("succeeded", batch, result_sha256=digest, records=ITEMS, failed_items=ITEMS - good)

    def _done_until_then(self, batch: Batch) -> str:
        """Keep what a batch that ended early had done: it was paid for."""
        files = [name for name in (batch.output_file_id, batch.error_file_id) if name is not None]
        try:
            contents = [self._insist(lambda name=name: self._openai.files.content(name).content) for name in files]  # type: ignore[misc]
        except (Undecided, TimeIsUp) as doubt:
            return f"the batch is {batch.status}, and what it had done cannot be had: {doubt}"
        outcomes = [outcome for content in contents for outcome in self._outcomes(content)]
        return f"the batch is {batch.status}; of {ITEMS} items it had done {len(outcomes)}"

    @staticmethod
    def _outcomes(content: bytes) -> list[tuple[str | None, int | None]]:
        try:
            rows = [json.loads(line) for line in content.splitlines()]
        except ValueError:
            return []
        return [(row.get("custom_id"), (row.get("response") or {}).get("status_code")) for row in rows]

    # -- patience

    def _insist(self, call: Callable[[], T]) -> T:
        """Repeat a call that changes nothing until it has an answer."""
        attempt = 0
        while True:
            told: Mapping[str, str] | None = None
            try:
                return call()
            except APIStatusError as error:
                gone = error.status_code in {404, 410} and attempt >= MOST_ATTEMPTS
                if gone or error.status_code in {400, 401, 403, 405, 422}:
                    raise Undecided(f"answered {error.status_code}: {error.message}") from error
                told = error.response.headers
            except (OpenAIError, ValueError):  # no answer, or one that is none
                pass
            self._wait(attempt, told)
            attempt += 1

    def _wait(self, attempt: int, told: Mapping[str, str] | None = None) -> None:
        first, cap = self._timing["poll_first_s"], self._timing["poll_cap_s"]
        seconds = min(cap, first * 2**attempt) * (1 + self._timing["poll_jitter"] * self._random.random())
        seconds = max(seconds, _asked((told or {}).get("retry-after", "")))
        left = self._deadline - time.monotonic()
        if seconds >= left:
            time.sleep(max(0.0, left))
            raise TimeIsUp("the business does not wait any longer, and the batch may still end")
        time.sleep(seconds)


def _asked(text: str) -> float:
    """How many seconds a Retry-After asks for; 0 where it says nothing that is to be understood."""
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


@patched(dialect="openai-batch", capabilities=["webhooks"])
def build(host: PatchedHost) -> Repaired:
    """Build the client for one run."""
    return Repaired(host)
