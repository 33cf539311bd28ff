// The usual way to wait for a job, on fetch: create with retries, poll in a loop, download.
//
// It works on every good day. Run it under jobsworth to see the others:
//
//     jobsworth check --one-shot -- node examples/node/naive.mjs

import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const env = process.env;
const headers = {
  Authorization: env.JOBSWORTH_AUTHORIZATION,
  traceparent: `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`,
};
const timeout = () => AbortSignal.timeout(Number(env.REQUEST_TIMEOUT_S) * 1000);

async function postWithRetries(body) {
  for (let tries = 0; tries < 5; tries++) {
    try {
      const answer = await fetch(`${env.PROVIDER_URL}/v1/jobs`, {
        method: "POST",
        headers: { ...headers, "Content-Type": "application/json", "Idempotency-Key": randomUUID() },
        body,
        signal: timeout(),
      });
      return await answer.json();
    } catch {
      await sleep(1000);
    }
  }
  throw new Error("the provider does not answer");
}

let job = await postWithRetries(readFileSync(env.REQUEST_FILE));
while (!["succeeded", "failed", "cancelled"].includes(job.status)) {
  await sleep(1000);
  job = await (await fetch(`${env.PROVIDER_URL}/v1/jobs/${job.id}`, { headers, signal: timeout() })).json();
}
if (job.status !== "succeeded") throw new Error(`the job ${job.status}`);
const result = await fetch(job.result.href, { headers, signal: timeout() });
writeFileSync(join(env.STATE_DIR, `${env.OPERATION_ID}.result`), Buffer.from(await result.arrayBuffer()));
console.log(JSON.stringify({ state: "succeeded", remote_job: job.id }));
