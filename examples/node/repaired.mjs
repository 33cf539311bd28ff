// The same client on fetch, repaired: it can be killed at any moment and run again.
//
// What it changes about naive.mjs:
//
// - a record on disk before every request, so that the next run knows what may have happened;
// - one idempotency token for the operation, made once and stored before it is used;
// - an unanswered create is an open question, settled by the same token or a look-up, or handed to a person;
// - Retry-After is obeyed, otherwise it backs off, and the time of the next poll outlives a restart;
// - a failed poll is not a failed job, and only a terminal state ends the waiting;
// - no credential leaves for another origin;
// - a result is checked against all that the provider states of it before anybody calls it a success.
//
//     jobsworth check --one-shot -- node examples/node/repaired.mjs

import { createHash, randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const env = process.env;
const url = env.PROVIDER_URL;
const operation = env.OPERATION_ID;
const contract = JSON.parse(readFileSync(env.CONTRACT_FILE, "utf8"));
const request = JSON.parse(readFileSync(env.REQUEST_FILE, "utf8"));
const seconds = (name) => Number(env[name]);

const EX_DATAERR = 65;
const MARGIN_S = 0.2; // of a deadline or a token's lifetime: a request takes a moment to arrive
const RESULT_TRIES = 7;
const REDIRECTS = [301, 302, 303, 307, 308];
const REJECTIONS = [400, 404, 405, 410, 413, 415, 422];
const TERMINAL = ["succeeded", "failed", "cancelled"];
const STATES = new Map(Object.entries(contract.status.words).map(([state, word]) => [word, state]));

const now = () => Date.now() / 1000;
const hex = (bytes) => randomBytes(bytes).toString("hex");
const sha256 = (data) => createHash("sha256").update(data).digest("hex");
const sameOrigin = (other) => new URL(other).origin === new URL(url).origin;

/** JSON with sorted keys and no spaces: the bytes that the digest of an inline result is of. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

// -- the record: all that is known of the operation, on disk before anything is done about it

const path = join(env.STATE_DIR, `${operation}.json`);
let record;

/** Make it durable: a new file beside the old one, then one rename. */
function save(changes) {
  Object.assign(record, changes);
  const file = openSync(`${path}.new`, "w");
  writeFileSync(file, JSON.stringify(record));
  fsyncSync(file);
  closeSync(file);
  renameSync(`${path}.new`, path);
}

function open() {
  const fingerprint = sha256(canonical(request));
  if (existsSync(path)) {
    record = JSON.parse(readFileSync(path, "utf8"));
    if (record.fingerprint !== fingerprint) {
      say({ state: "refused", explanation: `${operation} exists with another request` }, EX_DATAERR);
    }
    return;
  }
  record = {
    fingerprint,
    token: hex(16),
    trace: hex(16),
    begunAt: now(),
    firstSentAt: null,
    job: null,
    nextAt: 0,
    waits: 0,
    succeeded: null,
    claim: null,
  };
  save({});
}

function say(claim, status) {
  writeFileSync(1, `${JSON.stringify(claim)}\n`);
  process.exit(status);
}

/** Record how it ended, and say so. */
function end(state, explanation, more = {}) {
  const claim = { state, remote_job: record.job, explanation, ...more };
  save({ claim });
  say(claim, state === "succeeded" ? 0 : 1);
}

const giveUp = (why) => end("human_decision_required", why);

// -- requests

/** Send one request; null if no whole answer came. The credential goes to its own origin only. */
async function call(method, target, { headers = {}, body } = {}) {
  for (let hops = 0; hops < 5 && sameOrigin(target); hops++) {
    try {
      const answer = await fetch(target, {
        method,
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(seconds("REQUEST_TIMEOUT_S") * 1000),
        headers: {
          Authorization: env.JOBSWORTH_AUTHORIZATION,
          traceparent: `00-${record.trace}-${hex(8)}-01`,
          ...(body ? { "Content-Type": "application/json" } : {}),
          ...headers,
        },
      });
      const content = Buffer.from(await answer.arrayBuffer());
      if (!REDIRECTS.includes(answer.status) || method !== "GET") {
        return { status: answer.status, headers: answer.headers, content };
      }
      target = new URL(answer.headers.get("location") ?? "", target).href;
    } catch {
      return null;
    }
  }
  return null;
}

/** The JSON object in an answer that says it is JSON; null if there is none. */
function jsonOf(answer) {
  if (!answer?.headers.get("content-type")?.startsWith("application/json")) return null;
  try {
    const found = JSON.parse(answer.content);
    return found !== null && typeof found === "object" && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

/** What a Retry-After asks for, in either of its forms; null if there is none that can be read. */
function askedS(answer) {
  const text = answer?.headers.get("retry-after")?.trim() ?? "";
  if (/^[0-9]+$/.test(text)) return Number(text);
  const at = /^[A-Z][a-z]{2}, .* GMT$/.test(text) ? Date.parse(text) / 1000 : NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now());
}

/** Store when the next request is due: as asked, else by capped exponential back-off with jitter. */
function plan(answer, changes = {}) {
  let waitS = askedS(answer);
  let waits = changes.waits ?? record.waits;
  if (waitS === null) {
    waitS = Math.min(seconds("POLL_CAP_S"), seconds("POLL_FIRST_S") * 2 ** Math.min(waits, 30));
    waitS *= 1 + Math.random() * seconds("POLL_JITTER");
    waits += 1;
  }
  save({ ...changes, nextAt: now() + waitS, waits });
}

/** Sleep until the next request is due; false if the deadline comes first. */
async function wait(deadline) {
  // A timer may fire a millisecond early, and cannot be set for months.
  for (let left; (left = Math.min(record.nextAt, deadline) - now()) > 0; ) {
    await sleep(Math.min(Math.ceil(left * 1000) + 1, 2 ** 30));
  }
  return record.nextAt < deadline && now() < deadline;
}

// -- create

/** Get a job id, by one create in effect, however often it is sent. */
async function create() {
  const deadline = record.begunAt + seconds("CREATE_DEADLINE_S") - MARGIN_S;
  while (record.job === null) {
    if (!(await wait(deadline))) giveUp("the create deadline passed, and nobody knows whether there is a job");
    if (record.firstSentAt !== null && !maySendAgain()) {
      await lookUp("a create was not answered", true);
      continue;
    }
    const isFirst = record.firstSentAt === null;
    if (isFirst) save({ firstSentAt: now() });
    const body = { ...request };
    const headers = {};
    if (contract.idempotency.mechanism === "header") headers["Idempotency-Key"] = `"${record.token}"`;
    else if (contract.idempotency.mechanism === "body_field") body.request_id = record.token;
    if (contract.lookup.by === "by_operation_id") headers["X-Client-Operation-Id"] = operation;
    const answer = await call("POST", `${url}/v1/jobs`, { headers, body: JSON.stringify(body) });
    const job = jsonOf(answer);
    if ([200, 201, 202].includes(answer?.status) && job?.id !== undefined) accept(job, answer);
    else if (!REJECTIONS.includes(answer?.status)) plan(answer);
    else if (isFirst) end("failed", `the provider rejected the request: ${answer.status} ${answer.content}`);
    else await lookUp(`a repeated create was refused with ${answer.status}`, false);
  }
}

/** Whether the provider will recognise the create. */
function maySendAgain() {
  const knownUntil = record.firstSentAt + contract.idempotency.key_lifetime_s - MARGIN_S;
  return contract.idempotency.mechanism !== "none" && now() < knownUntil;
}

function accept(job, answer) {
  if ((job.client_reference ?? operation) !== operation) {
    giveUp(`the provider answered with job ${job.id}, which is for ${job.client_reference}`);
  }
  const finished = contract.create_answer === "synchronous" && STATES.get(job.status) === "succeeded" ? job : null;
  plan(answer, { job: job.id, succeeded: finished, waits: 0 });
}

/** Find the job of an uncertain create; hand it to a person where that cannot be done. */
async function lookUp(doubt, maySend) {
  const [key, value] = {
    by_client_reference: ["client_reference", operation],
    by_operation_id: ["operation_id", operation],
    recent_by_request_id: ["request_id", record.token],
    none: [],
  }[contract.lookup.by];
  if (key === undefined) giveUp(`${doubt}, and the provider offers no way to find out`);
  const answer = await call("GET", `${url}/v1/jobs?${new URLSearchParams({ [key]: value })}`);
  const found = answer?.status === 200 ? jsonOf(answer) : null;
  if (found === null) plan(answer);
  else if (found.jobs.length > 1) giveUp(`there is more than one job: ${found.jobs.map((job) => job.id).join(", ")}`);
  else if (found.jobs.length === 1) accept(found.jobs[0], answer);
  else if (!contract.lookup.authoritative) plan(answer); // an empty answer proves nothing; look again until the deadline
  else if (maySend) plan(answer, { firstSentAt: null }); // there is none: the next create is the first again
  else end("failed", `${doubt}, and there is no job`);
}

// -- observe and collect

/** Read the status until it is terminal. */
async function observe() {
  const deadline = record.begunAt + seconds("RESULT_DEADLINE_S");
  while (record.succeeded === null) {
    if (!(await wait(deadline))) end("result_timed_out", "the result deadline passed; the job may go on");
    const answer = await call("GET", `${url}/v1/jobs/${encodeURIComponent(record.job)}`);
    const job = answer?.status === 200 ? jsonOf(answer) : null;
    const state = STATES.get(job?.status); // undefined: a word that is in no documentation, which ends nothing
    if (job?.id !== record.job || !TERMINAL.includes(state)) plan(answer);
    else if (state === "succeeded") save({ succeeded: job, nextAt: 0, waits: 0 });
    else end(state, JSON.stringify(job.error ?? null));
  }
  return record.succeeded;
}

/** Fetch the result, and believe it only if it is what the provider states. */
async function collect() {
  const deadline = record.begunAt + seconds("RESULT_DEADLINE_S");
  const once = contract.result.kind === "one_time";
  let state = "result_unavailable";
  let why = "no result came";
  for (let tries = 0; tries < RESULT_TRIES; tries++) {
    const stated = (await observe()).result;
    if (!(await wait(deadline))) break;
    const isInline = "inline" in stated;
    const answer = isInline
      ? { status: 200, headers: new Headers({ "content-type": stated.content_type }), content: Buffer.from(canonical(stated.inline)) }
      : await call("GET", new URL(stated.href, url).href);
    if (answer === null) {
      [state, why] = ["result_unavailable", "the result was not delivered"];
    } else if (answer.status === 410 && !once) {
      save({ succeeded: null }); // the link has expired: a status read gives a new one
      why = "its link had expired";
    } else if (answer.status !== 200) {
      [state, why] = ["result_unavailable", `the result was answered with ${answer.status}`];
    } else {
      const { wrong, records, failed } = check(stated, answer.headers.get("content-type") ?? "", answer.content);
      if (wrong === null) {
        writeFileSync(join(env.STATE_DIR, `${operation}.result`), answer.content);
        end("succeeded", null, { result_sha256: sha256(answer.content), records, failed_items: failed });
      }
      [state, why] = ["result_validation_failed", wrong];
      if (once) break;
    }
    plan(answer);
  }
  end(state, why);
}

/** What is wrong with a result (null: nothing), the number of its records, and how many of them failed. */
function check(stated, kind, body) {
  if (kind.split(";")[0] !== stated.content_type) return { wrong: `it is ${kind}, not ${stated.content_type}` };
  if ((stated.size ?? body.length) !== body.length) return { wrong: `it has ${body.length} bytes, not ${stated.size}` };
  if ((stated.sha256 ?? sha256(body)) !== sha256(body)) return { wrong: "its checksum is another one" };
  let document;
  try {
    document = JSON.parse(body);
  } catch (error) {
    return { wrong: `it cannot be understood: ${error.message}` };
  }
  const rows = document?.records;
  const isRow = (row) => row?.id !== undefined && ["ok", "failed"].includes(row.status);
  if (!Array.isArray(rows) || !rows.every(isRow) || document.client_reference !== operation) {
    return { wrong: "it holds something else" };
  }
  const failed = rows.filter((row) => row.status === "failed").length;
  if ((stated.records ?? rows.length) !== rows.length || (stated.failed ?? failed) !== failed) {
    return { wrong: `${rows.length} records, ${failed} failed; stated are ${stated.records} and ${stated.failed}` };
  }
  return { wrong: null, records: rows.length, failed };
}

open();
if (record.claim !== null) say(record.claim, record.claim.state === "succeeded" ? 0 : 1);
await create();
await observe();
await collect();
