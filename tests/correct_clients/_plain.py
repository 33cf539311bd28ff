"""A second client that is right, made otherwise than the reference client: the rules must find nothing in it.

It keeps plain records in the shared disk, notes nothing of what it does, holds one lease for the whole of a job, and
works through its operations one after another. Its variants differ in what a correct client is free to choose.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import msgspec

from harness.subject import REST_STATES, Claim, Host, Refused
from reference_client.polling import read_retry_after
from reference_client.webhooks import Verifier, WebhookRejected

UNDECIDED: Final = frozenset({401, 403, 408, 409, 425, 429})
ENDS: Final = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(kw_only=True)
class Record:
    """One operation, as it lies on the disk. A change of a field is durable at once."""

    operation: str
    body: bytes
    token: str
    trace: str
    created_at: float
    state: str = "create_pending"
    job: str | None = None
    due_at: float = 0.0
    misses: int = 0
    first_sent_at: float | None = None
    accepted_at: float = 0.0
    absent: bool = True  # certain that no job exists: nothing was sent, or a look-up proved it
    stop_at: float | None = None
    cancel_at: float | None = None  # when a cancel is to be sent; None: not, or not any more
    cancels_sent: int = 0
    collect_until: float = 0.0
    rereads: int = 0
    told: dict[str, Any] = field(default_factory=dict)  # what the job's status says of its result
    claim: dict[str, Any] = field(default_factory=dict)
    owner: str | None = None
    owned_until: float = 0.0
    events: set[str] = field(default_factory=set)


class Gone(Exception):
    """The lease is somebody else's now: drop everything."""


class PlainClient:
    """One worker."""

    looks_up_first = False
    slowness = 1.0  # polls this many times slower than it might
    confirms = False  # reads a job that has succeeded once more before it believes it
    heeds_date = True  # counts a Retry-After that is a date from the answer's own date
    releases = False  # gives the lease back after each step
    tick_s = 0.1  # how often it looks for what is due

    def __init__(self, host: Host) -> None:
        self.host = host
        self.records: dict[str, Record] = host.disk.setdefault("records", {})
        self.verifier = Verifier(host.webhook_secrets)
        self.timing = host.timing
        self.contract = host.contract
        self.states = {word: state for state, word in host.contract["status"]["words"].items()}
        self.lease_s = max(host.timing["lease_s"], 3 * host.timing["request_timeout_s"])

    def now(self) -> float:
        """The time by which everything is counted that is on the disk: that of the store, which all workers share."""
        return self.host.store_now()

    # -- what it is told

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        token = f"{self.host.random.getrandbits(128):032x}"
        body = dict(request)
        if self.contract["idempotency"]["mechanism"] == "body_field":
            body["request_id"] = token
        encoded = msgspec.json.encode(body, order="sorted")
        known = self.records.get(operation)
        if known is not None:
            if {**msgspec.json.decode(known.body), "request_id": ""} != {**body, "request_id": ""}:
                raise Refused("known with another request")
            return
        now = self.now()
        trace = f"{self.host.random.getrandbits(128):032x}"
        self.records[operation] = Record(operation=operation, body=encoded, token=token, trace=trace, created_at=now)

    async def cancel(self, operation: str, who: str, why: str) -> None:
        record = self.records.get(operation)
        if record is None:
            raise Refused("unknown")
        if record.stop_at is None and (record.state not in REST_STATES or record.state == "result_timed_out"):
            record.stop_at = record.cancel_at = self.now()
            if record.job is not None and record.state != "result_collecting":
                record.due_at = record.stop_at
            if record.state == "result_timed_out":
                record.state = "observing"

    async def report(self) -> Sequence[Claim]:
        return [
            Claim(operation=record.operation, state=record.state, remote_job=record.job, **record.claim)
            for record in self.records.values()
        ]

    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        try:
            event = self.verifier.verify(headers, body, now=self.host.clock.now())
        except WebhookRejected as rejection:
            return rejection.status
        job = msgspec.json.decode(body)["data"]["id"]
        for record in self.records.values():
            if record.job == job and event.event_id not in record.events:
                record.events.add(event.event_id)
                if record.state == "observing":
                    record.due_at = self.now()
        return 200

    # -- what it does

    async def run(self) -> None:
        while True:
            for record in list(self.records.values()):
                try:
                    await self._look_at(record)
                except Gone:
                    continue
            await self.host.clock.sleep(self.tick_s)

    async def _look_at(self, record: Record) -> None:
        now, lease_now = self.now(), self.host.store_now()
        if record.state in REST_STATES or (record.owner != self.host.worker and record.owned_until > lease_now):
            return
        if record.owner != self.host.worker and record.due_at > now and not self._deadline_passed(record, now):
            return
        taken_over = record.owner not in {None, self.host.worker}
        record.owner, record.owned_until = self.host.worker, lease_now + self.lease_s
        if taken_over and record.state == "create_pending" and record.first_sent_at is not None:
            record.state = "create_unknown"
        if record.due_at <= now or self._deadline_passed(record, now):
            await self._step(record, now)
            if self.releases:
                record.owner, record.owned_until = None, 0.0

    def _deadline_passed(self, record: Record, now: float) -> bool:
        if record.state == "observing":
            return now >= self._observe_until(record)
        if record.state == "result_collecting":
            return now >= record.collect_until
        return record.first_sent_at is not None and now >= record.created_at + self.timing["create_deadline_s"]

    def _observe_until(self, record: Record) -> float:
        if record.stop_at is not None:
            return max(record.stop_at, record.accepted_at) + self.timing["cancel_deadline_s"]
        return record.created_at + self.timing["result_deadline_s"]

    async def _call(
        self, record: Record, method: str, path: str, *, body: bytes | None = None, **headers: str
    ) -> httpx2.Response | None:
        """Make a call under the lease; None if nothing whole came back."""
        if record.owner != self.host.worker or record.owned_until <= self.host.store_now():
            raise Gone
        record.owned_until = self.host.store_now() + self.lease_s
        mine = record.owned_until
        named = {"authorization": self.host.authorization, "traceparent": f"00-{record.trace}-00f067aa0ba902b7-01"}
        if body is not None:
            named["content-type"] = "application/json"
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        timeout = httpx2.Timeout(self.timing["request_timeout_s"])
        async with httpx2.AsyncClient(
            transport=self.host.transport, base_url=self.host.base_url, timeout=timeout
        ) as client:
            try:
                answer = await client.request(method, path, headers=named, content=body)
            except httpx2.HTTPError:
                answer = None
        if not self._is_still_held(record, mine):
            raise Gone
        return answer

    def _is_still_held(self, record: Record, until: float) -> bool:
        """Whether the lease under which a call was made is this worker's still, now that the answer is there."""
        return (record.owner, record.owned_until) == (self.host.worker, until) and until > self.host.store_now()

    def _later(self, record: Record, answer: httpx2.Response | None) -> None:
        """Set the time of the next call: as asked, or backed off."""
        now = self.now()
        headers = {} if answer is None else dict(answer.headers)
        if not self.heeds_date:
            headers.pop("date", None)
        asked = read_retry_after(headers, now).delay_s
        timing = self.timing
        wait = min(timing["poll_cap_s"], timing["poll_first_s"] * 2**record.misses)
        wait *= self.host.random.uniform(1 - timing["poll_jitter"], 1)
        if record.stop_at is None:  # what a cancel comes to is watched at the usual pace
            wait *= self.slowness
        record.misses += 1
        record.due_at = now + (wait if asked is None else max(asked, timing["poll_first_s"]))

    def _rest(self, record: Record, state: str, why: str | None = None) -> None:
        record.state = state
        if why is not None:
            record.claim = {"explanation": why}

    async def _step(self, record: Record, now: float) -> None:
        if record.state in {"create_pending", "create_unknown"}:
            await self._create(record, now)
        elif record.state == "observing":
            await self._observe(record, now)
        else:
            await self._collect(record, now)

    async def _create(self, record: Record, now: float) -> None:
        keys, lookup = self.contract["idempotency"], self.contract["lookup"]
        if record.stop_at is not None and record.absent:
            state = "withdrawn" if record.first_sent_at is None else "human_decision_required"
            self._rest(record, state, "a stop was asked for, and there is no job")
            return
        if record.first_sent_at is not None and now >= record.created_at + self.timing["create_deadline_s"]:
            self._rest(record, "human_decision_required", "nobody knows whether there is a job")
            return
        age_s = 0.0 if record.first_sent_at is None else now - record.first_sent_at
        keyed = keys["mechanism"] != "none" and age_s + 2 < keys["key_lifetime_s"]
        if record.absent or (keyed and not (self.looks_up_first and lookup["by"] != "none")):
            await self._send_create(record, now, keys)
        elif lookup["by"] != "none":
            await self._look_up(record, lookup)
        else:
            self._rest(record, "human_decision_required", "the provider offers no way to find out about the create")

    async def _send_create(self, record: Record, now: float, keys: Mapping[str, Any]) -> None:
        repeated = record.first_sent_at is not None
        record.first_sent_at, record.absent, record.state = record.first_sent_at or now, False, "create_unknown"
        headers = {"idempotency_key": f'"{record.token}"'} if keys["mechanism"] == "header" else {}
        if self.contract["lookup"]["by"] == "by_operation_id":
            headers["x_client_operation_id"] = record.operation
        answer = await self._call(record, "POST", "/v1/jobs", body=record.body, **headers)
        job = self._job(answer, {200, 201, 202})
        if job is not None:
            self._accept(record, job, answer)
        elif answer is not None and 400 <= answer.status_code < 500 and answer.status_code not in UNDECIDED:
            state = "human_decision_required" if repeated else "failed"
            self._rest(record, state, f"the create was answered {answer.status_code}")
        else:
            self._later(record, answer)

    async def _look_up(self, record: Record, lookup: Mapping[str, Any]) -> None:
        name, value = {
            "by_client_reference": ("client_reference", msgspec.json.decode(record.body)["client_reference"]),
            "by_operation_id": ("operation_id", record.operation),
            "recent_by_request_id": ("request_id", record.token),
        }[lookup["by"]]
        answer = await self._call(record, "GET", f"/v1/jobs?{name}={value}")
        listed = _json(answer).get("jobs") if answer is not None and answer.status_code == 200 else None
        if not isinstance(listed, list):
            self._later(record, answer)
        elif len(listed) == 1:
            self._accept(record, self._read(listed[0]), answer)
        elif listed:
            self._rest(record, "human_decision_required", "several jobs for one operation")
        elif lookup["authoritative"]:
            record.absent, record.due_at = True, self.now()
        else:
            self._later(record, answer)

    def _accept(self, record: Record, job: Mapping[str, Any], answer: httpx2.Response | None) -> None:
        if not self._is_ours(record, job):
            self._rest(record, "human_decision_required", "the answer is about somebody else's job")
            return
        record.job, record.state, record.misses = job["id"], "observing", 0
        record.accepted_at = self.now()
        if job["status"] == "succeeded" and (job.get("result") or {}).get("inline") is not None:
            self._succeeded(record, job)
            return
        if job["status"] in ENDS - {"succeeded"}:
            self._rest(record, job["status"])
            return
        self._later(record, answer)
        if record.stop_at is not None:
            record.due_at = record.cancel_at = self.now()

    def _job(self, answer: httpx2.Response | None, statuses: set[int]) -> dict[str, Any] | None:
        """The job in an answer, if it is a whole and readable one, with its state in the plain words."""
        if answer is None or answer.status_code not in statuses:
            return None
        value = _json(answer)
        return self._read(value) if {"id", "status"} <= value.keys() else None

    def _read(self, job: dict[str, Any]) -> dict[str, Any]:
        return {**job, "status": self.states.get(job["status"], job["status"])}

    @staticmethod
    def _is_ours(record: Record, job: Mapping[str, Any]) -> bool:
        same = job.get("client_reference") == msgspec.json.decode(record.body)["client_reference"]
        return same and record.job in {None, job.get("id")}

    async def _observe(self, record: Record, now: float) -> None:
        if now >= self._observe_until(record):
            state = "result_timed_out" if record.stop_at is None else "cancellation_unconfirmed"
            self._rest(record, state, "the deadline passed")
            return
        cancel = self.contract["cancel"]
        if record.cancel_at is not None and cancel["effect"] == "unsupported":
            record.cancel_at = None
        if record.cancel_at is not None and now >= record.cancel_at:
            await self._cancel(record, cancel)
            return
        answer = await self._call(record, "GET", f"/v1/jobs/{record.job}")
        job = self._job(answer, {200})
        if job is not None and not self._is_ours(record, job):
            self._rest(record, "human_decision_required", "the answer is about another job")
        elif job is not None and job["status"] in ENDS:
            await self._ended(record, job)
        else:
            self._later(record, answer)

    async def _cancel(self, record: Record, cancel: Mapping[str, Any]) -> None:
        record.cancel_at, record.cancels_sent = None, record.cancels_sent + 1
        if cancel["method"] == "post":
            answer = await self._call(record, "POST", f"/v1/jobs/{record.job}/cancel")
        else:
            answer = await self._call(record, "DELETE", f"/v1/jobs/{record.job}")
        self._later(record, answer)
        uncertain = answer is None or answer.status_code >= 500 or answer.status_code in {408, 425, 429}
        if uncertain and cancel["repeatable"]:
            record.cancel_at = record.due_at

    async def _ended(self, record: Record, job: Mapping[str, Any]) -> None:
        if job["status"] != "succeeded":
            self._rest(record, job["status"])
            return
        if self.confirms:
            await self._call(record, "GET", f"/v1/jobs/{record.job}")
        self._succeeded(record, job)

    def _succeeded(self, record: Record, job: Mapping[str, Any]) -> None:
        now = self.now()
        record.state, record.told, record.due_at, record.misses = "result_collecting", job.get("result") or {}, now, 0
        if record.collect_until == 0:
            record.collect_until = now + self.timing["create_deadline_s"]

    async def _collect(self, record: Record, now: float) -> None:
        inline = record.told.get("inline")
        if inline is not None:
            self._keep(record, msgspec.json.encode(inline, order="sorted"), "application/json")
            return
        if now >= record.collect_until:
            self._rest(record, "result_unavailable", "the result could not be had in time")
            return
        href = str(record.told.get("href", ""))
        if not href.startswith(self.host.base_url + "/"):
            href = f"/v1/jobs/{record.job}/result"
        answer = await self._call(record, "GET", href)
        if answer is not None and answer.status_code == 200:
            self._keep(record, answer.content, answer.headers.get("content-type", ""))
        elif answer is not None and answer.status_code in {403, 404, 410}:
            await self._gone(record, answer)
        else:
            self._later(record, answer)

    async def _gone(self, record: Record, answer: httpx2.Response) -> None:
        if self.contract["result"]["kind"] == "one_time" or record.rereads >= 2:
            self._rest(record, "result_unavailable", f"the result was answered {answer.status_code}")
            return
        record.rereads += 1
        fresh = await self._call(record, "GET", f"/v1/jobs/{record.job}")
        job = self._job(fresh, {200})
        self._later(record, fresh)
        if job is not None and job["status"] == "succeeded":
            record.told = job.get("result") or {}

    def _keep(self, record: Record, body: bytes, kind: str) -> None:
        told = record.told
        digest = hashlib.sha256(body).hexdigest()
        try:
            rows = msgspec.json.decode(body)["records"]
            failed = sum(row["status"] != "ok" for row in rows)
        except (msgspec.DecodeError, KeyError, TypeError):
            self._rest(record, "result_validation_failed", "the result cannot be read")
            return
        right = (
            kind.partition(";")[0] == told.get("content_type", "application/json")
            and told.get("sha256", digest) == digest
            and told.get("size", len(body)) == len(body)
            and told.get("records", len(rows)) == len(rows)
            and told.get("failed", failed) == failed
        )
        if not right:
            self._rest(record, "result_validation_failed", "the result is not what was stated")
            return
        record.state = "succeeded"
        record.claim = {"result_sha256": digest, "records": len(rows), "failed_items": failed}


def _json(answer: httpx2.Response) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}
