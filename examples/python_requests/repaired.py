"""The same blocking loop on requests, repaired: it can be killed at any moment and run again.

What it changes about naive.py:

- a record on disk before every request, so that the next run knows what may have happened;
- one idempotency token for the operation, made once and stored before it is used;
- an unanswered create is an open question, settled by the same token or a look-up, or handed to a person;
- Retry-After is obeyed, otherwise it backs off, and the time of the next poll outlives a restart;
- a failed poll is not a failed job, and only a terminal state ends the waiting;
- no credential leaves for another origin;
- a result is checked against all that the provider states of it before anybody calls it a success.

    jobsworth check --one-shot -- python examples/python_requests/repaired.py
"""

import hashlib
import json
import os
import random
import secrets
import sys
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urljoin, urlsplit

import requests

URL = os.environ["PROVIDER_URL"]
OPERATION = os.environ["OPERATION_ID"]
STATE = Path(os.environ["STATE_DIR"])
CONTRACT = json.loads(Path(os.environ["CONTRACT_FILE"]).read_text(encoding="utf-8"))
REQUEST = json.loads(Path(os.environ["REQUEST_FILE"]).read_text(encoding="utf-8"))
TIMEOUT_S = float(os.environ["REQUEST_TIMEOUT_S"])
CREATE_DEADLINE_S = float(os.environ["CREATE_DEADLINE_S"])
RESULT_DEADLINE_S = float(os.environ["RESULT_DEADLINE_S"])
POLL_FIRST_S = float(os.environ["POLL_FIRST_S"])
POLL_CAP_S = float(os.environ["POLL_CAP_S"])
POLL_JITTER = float(os.environ["POLL_JITTER"])

EX_DATAERR = 65
MARGIN_S = 0.2  # of a deadline or a token's lifetime: a request takes a moment to arrive
RESULT_TRIES = 7
REDIRECTS = {301, 302, 303, 307, 308}
REJECTIONS = {400, 404, 405, 410, 413, 415, 422}
STATES = {word: state for state, word in CONTRACT["status"]["words"].items()}  # what the provider's words mean
Json = dict[str, Any]


# -- the record


class Record:
    """All that is known of the operation, on disk before anything is done about it."""

    def __init__(self) -> None:
        self.path = STATE / f"{OPERATION}.json"
        fingerprint = hashlib.sha256(json.dumps(REQUEST, sort_keys=True).encode()).hexdigest()
        if self.path.exists():
            self.known: Json = json.loads(self.path.read_text(encoding="utf-8"))
            if self.known["fingerprint"] != fingerprint:
                finish({"state": "refused", "explanation": f"{OPERATION} exists with another request"}, EX_DATAERR)
            return
        self.known = {
            "fingerprint": fingerprint,
            "token": secrets.token_hex(16),
            "trace": secrets.token_hex(16),
            "begun_at": time.time(),
            "first_sent_at": None,
            "job": None,
            "next_at": 0.0,
            "waits": 0,
            "succeeded": None,
            "claim": None,
        }
        self.save()

    def save(self, **changes: Any) -> None:
        """Make it durable: a new file beside the old one, then one rename."""
        self.known.update(changes)
        beside = self.path.with_suffix(".new")
        with beside.open("w", encoding="utf-8") as file:
            json.dump(self.known, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)

    def __getattr__(self, name: str) -> Any:
        return self.known[name]


def finish(claim: Json, code: int) -> NoReturn:
    print(json.dumps(claim))
    sys.exit(code)


def end(record: Record, state: str, explanation: str = "", **more: Any) -> NoReturn:
    """Record how it ended, and say so."""
    claim = {"state": state, "remote_job": record.job, "explanation": explanation or None, **more}
    record.save(claim=claim)
    finish(claim, 0 if state == "succeeded" else 1)


# -- requests


def call(record: Record, method: str, url: str, **options: Any) -> requests.Response | None:
    """Send one request; None if no whole answer came. The credential goes to its own origin only."""
    headers = {"traceparent": f"00-{record.trace}-{secrets.token_hex(8)}-01", **options.pop("headers", {})}
    for _ in range(5):
        own = urlsplit(url)[:2] == urlsplit(URL)[:2]
        if not own:
            return None
        headers["Authorization"] = os.environ["JOBSWORTH_AUTHORIZATION"]
        try:
            answer = requests.request(method, url, headers=headers, timeout=TIMEOUT_S, allow_redirects=False, **options)
        except requests.RequestException:
            return None
        if answer.status_code not in REDIRECTS or method != "GET":
            return answer
        url = urljoin(url, answer.headers.get("Location", ""))
    return None


def json_of(answer: requests.Response | None) -> Json | None:
    """The JSON object in an answer that says it is JSON."""
    if answer is None or not answer.headers.get("Content-Type", "").startswith("application/json"):
        return None
    try:
        found = answer.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def asked_s(answer: requests.Response | None) -> float | None:
    """What a Retry-After asks for, in either of its forms; None if there is none that can be read."""
    text = "" if answer is None else answer.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else None
    except (ValueError, OverflowError):
        return None


def plan(record: Record, answer: requests.Response | None, *, anew: bool = False, **changes: Any) -> None:
    """Store when the next request is due: as asked, else by capped exponential back-off with jitter."""
    wait_s = asked_s(answer)
    waits = 0 if anew else record.waits
    if wait_s is None:
        wait_s = min(POLL_CAP_S, POLL_FIRST_S * 2.0 ** min(waits, 30)) * random.uniform(1, 1 + POLL_JITTER)
        waits += 1
    record.save(next_at=time.time() + wait_s, waits=waits, **changes)


def wait(record: Record, deadline: float) -> bool:
    """Sleep until the next request is due; False if the deadline comes first."""
    time.sleep(max(0.0, min(record.next_at, deadline) - time.time()))
    return record.next_at < deadline and time.time() < deadline


# -- create


def create(record: Record) -> None:
    """Get a job id, by one create in effect, however often it is sent."""
    deadline = record.begun_at + CREATE_DEADLINE_S - MARGIN_S
    while record.job is None:
        if not wait(record, deadline):
            give_up(record, "the create deadline passed, and nobody knows whether there is a job")
        if record.first_sent_at is not None and not may_send_again(record):
            look_up(record)
            continue
        is_first = record.first_sent_at is None
        if is_first:
            record.save(first_sent_at=time.time())
        body, headers = dict(REQUEST), {}
        if CONTRACT["idempotency"]["mechanism"] == "header":
            headers["Idempotency-Key"] = f'"{record.token}"'
        elif CONTRACT["idempotency"]["mechanism"] == "body_field":
            body["request_id"] = record.token
        if CONTRACT["lookup"]["by"] == "by_operation_id":
            headers["X-Client-Operation-Id"] = OPERATION
        answer = call(record, "POST", f"{URL}/v1/jobs", json=body, headers=headers)
        job = json_of(answer)
        if answer is not None and answer.status_code in {200, 201, 202} and job is not None and "id" in job:
            accept(record, job, answer)
        elif answer is not None and answer.status_code in REJECTIONS:
            if is_first:
                end(record, "failed", f"the provider rejected the request: {answer.status_code} {answer.text}")
            look_up(record, f"a repeated create was refused with {answer.status_code}")
        else:
            plan(record, answer)


def may_send_again(record: Record) -> bool:
    """Whether the provider will recognise the create."""
    lifetime_s = CONTRACT["idempotency"]["key_lifetime_s"]
    known_until = record.first_sent_at + lifetime_s - MARGIN_S
    return CONTRACT["idempotency"]["mechanism"] != "none" and time.time() < known_until


def accept(record: Record, job: Json, answer: requests.Response | None) -> None:
    if job.get("client_reference") not in {None, OPERATION}:
        give_up(record, f"the provider answered with job {job['id']}, which is for {job['client_reference']}")
    finished = job if CONTRACT["create_answer"] == "synchronous" and state_of(job) == "succeeded" else None
    plan(record, answer, anew=True, job=job["id"], succeeded=finished)


def look_up(record: Record, doubt: str = "a create was not answered") -> None:
    """Find the job of an uncertain create; hand it to a person where that cannot be done."""
    lookup = CONTRACT["lookup"]
    key, value = {
        "by_client_reference": ("client_reference", OPERATION),
        "by_operation_id": ("operation_id", OPERATION),
        "recent_by_request_id": ("request_id", record.token),
        "none": ("", ""),
    }[lookup["by"]]
    if not key:
        give_up(record, f"{doubt}, and the provider offers no way to find out")
    answer = call(record, "GET", f"{URL}/v1/jobs", params={key: value})
    found = json_of(answer)
    if answer is None or answer.status_code != 200 or found is None:
        plan(record, answer)
    elif len(found["jobs"]) > 1:
        give_up(record, "there is more than one job: " + ", ".join(job["id"] for job in found["jobs"]))
    elif found["jobs"]:
        accept(record, found["jobs"][0], answer)
    elif lookup["authoritative"] and doubt.startswith("a create was not"):
        plan(record, answer, first_sent_at=None)  # there is none: the next create is the first again
    elif lookup["authoritative"]:
        end(record, "failed", f"{doubt}, and there is no job")
    else:
        plan(record, answer)  # an empty answer proves nothing; look again until the deadline


def give_up(record: Record, why: str) -> NoReturn:
    end(record, "human_decision_required", why)


# -- observe and collect


def state_of(job: Json) -> str | None:
    """What the provider's word for the job's state means; None for a word that is in no documentation."""
    word = job.get("status")
    return STATES.get(word) if isinstance(word, str) else None


def observe(record: Record) -> Json:
    """Read the status until it is terminal."""
    deadline = record.begun_at + RESULT_DEADLINE_S
    while record.succeeded is None:
        if not wait(record, deadline):
            end(record, "result_timed_out", "the result deadline passed; the job may go on")
        answer = call(record, "GET", f"{URL}/v1/jobs/{record.job}")
        job = json_of(answer)
        state = state_of(job) if answer is not None and answer.status_code == 200 and job is not None else None
        if job is None or job.get("id") != record.job or state not in {"succeeded", "failed", "cancelled"}:
            plan(record, answer)
        elif state == "succeeded":
            record.save(succeeded=job, next_at=0.0, waits=0)
        else:
            end(record, state, json.dumps(job.get("error")))
    known: Json = record.succeeded
    return known


def collect(record: Record) -> NoReturn:
    """Fetch the result, and believe it only if it is what the provider states."""
    deadline = record.begun_at + RESULT_DEADLINE_S
    once = CONTRACT["result"]["kind"] == "one_time"
    state, why = "result_unavailable", "no result came"
    for _ in range(RESULT_TRIES):
        stated = observe(record)["result"]
        if not wait(record, deadline):
            break
        if "inline" in stated:
            body = json.dumps(stated["inline"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
            answer, kind = None, stated["content_type"]
        else:
            answer = call(record, "GET", urljoin(URL, stated["href"]))
            body, kind = (b"", "") if answer is None else (answer.content, answer.headers.get("Content-Type", ""))
        if answer is None and "inline" not in stated:
            state, why = "result_unavailable", "the result was not delivered"
        elif answer is not None and answer.status_code == 410 and not once:
            record.save(succeeded=None)  # the link has expired: a status read gives a new one
            why = "its link had expired"
        elif answer is not None and answer.status_code != 200:
            state, why = "result_unavailable", f"the result was answered with {answer.status_code}"
        else:
            wrong, records, failed = check(stated, kind, body)
            if not wrong:
                (STATE / f"{OPERATION}.result").write_bytes(body)
                digest = hashlib.sha256(body).hexdigest()
                end(record, "succeeded", result_sha256=digest, records=records, failed_items=failed)
            state, why = "result_validation_failed", wrong
            if once:
                break
        plan(record, answer)
    end(record, state, why)


def check(stated: Json, kind: str, body: bytes) -> tuple[str, int, int]:
    """What is wrong with a result, the number of its records, and how many of them failed."""
    if kind.partition(";")[0] != stated["content_type"]:
        return f"it is {kind}, not {stated['content_type']}", 0, 0
    if stated.get("size", len(body)) != len(body):
        return f"it has {len(body)} bytes, not {stated['size']}", 0, 0
    if stated.get("sha256", digest := hashlib.sha256(body).hexdigest()) != digest:
        return "its checksum is another one", 0, 0
    try:
        document = json.loads(body)
        rows = document["records"]
        failed = sum(row["status"] == "failed" for row in rows)
        odd = [row for row in rows if row["status"] not in {"ok", "failed"} or "id" not in row]
    except (ValueError, KeyError, TypeError) as error:
        return f"it cannot be understood: {error!r}", 0, 0
    if odd or document.get("client_reference") != OPERATION:
        return "it holds something else", 0, 0
    if stated.get("records", len(rows)) != len(rows) or stated.get("failed", failed) != failed:
        return (
            f"{len(rows)} records, {failed} failed; stated are {stated.get('records')} and {stated.get('failed')}",
            0,
            0,
        )
    return "", len(rows), failed


def main() -> None:
    record = Record()
    if record.claim is not None:
        finish(record.claim, 0 if record.claim["state"] == "succeeded" else 1)
    create(record)
    observe(record)
    collect(record)


if __name__ == "__main__":
    main()
