"""The usual way to wait for a job, on requests: create with retries, poll in a loop, download.

It works on every good day. Run it under jobsworth to see the others:

    jobsworth check --one-shot -- python examples/python_requests/naive.py
"""

import json
import os
import secrets
import time
import uuid
from pathlib import Path

import requests

URL = os.environ["PROVIDER_URL"]
HEADERS = {
    "Authorization": os.environ["JOBSWORTH_AUTHORIZATION"],
    "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01",
}
TIMEOUT_S = float(os.environ["REQUEST_TIMEOUT_S"])


def post_with_retries(body: dict[str, object]) -> requests.Response:
    for _ in range(5):
        try:
            return requests.post(
                f"{URL}/v1/jobs",
                json=body,
                headers={**HEADERS, "Idempotency-Key": str(uuid.uuid4())},
                timeout=TIMEOUT_S,
            )
        except requests.RequestException:
            time.sleep(1)
    raise SystemExit("the provider does not answer")


def main() -> None:
    job = post_with_retries(json.loads(Path(os.environ["REQUEST_FILE"]).read_text(encoding="utf-8"))).json()
    while job["status"] not in {"succeeded", "failed", "cancelled"}:
        time.sleep(1)
        job = requests.get(f"{URL}/v1/jobs/{job['id']}", headers=HEADERS, timeout=TIMEOUT_S).json()
    if job["status"] != "succeeded":
        raise SystemExit(f"the job {job['status']}")
    result = requests.get(job["result"]["href"], headers=HEADERS, timeout=TIMEOUT_S)
    path = Path(os.environ["STATE_DIR"]) / f"{os.environ['OPERATION_ID']}.result"
    path.write_bytes(result.content)
    print(json.dumps({"state": "succeeded", "remote_job": job["id"]}))


if __name__ == "__main__":
    main()
