// What the page is made of: elements whose text is only ever text, runs read from their JSON, and the address of it all.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
const put = (node, ...children) => fill(node, {}, children);
const byId = (id) => document.getElementById(id);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** All runs, without what is told of them: id, verdict, rules, faults, workers, text. */
const INDEX = JSON.parse(byId("index").textContent);
const NUMBER_OF = new Map(INDEX.map((run, number) => [run.id, number]));

const read = new Map();

/** A whole run, read when it is first looked at. */
function runOf(number) {
  if (!read.has(number)) read.set(number, JSON.parse(byId(`run-${number}`).textContent));
  return read.get(number);
}

/** Everything a run tells, in lower case, for searching. */
function textOf(number) {
  const entry = INDEX[number];
  if (entry.all === undefined) {
    const run = runOf(number);
    entry.all = [entry.text, ...run.story.map((line) => line.text), ...run.facts.map((fact) => fact.text)].join("\n").toLowerCase();
  }
  return entry.all;
}

// The address: #run=ID&fact=SEQ&view=facts&q=…&verdict=…&rule=…&fault=…&worker=…

const KEYS = ["run", "fact", "view", "q", "verdict", "rule", "fault", "worker"];

function address() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(KEYS.map((key) => [key, given.get(key) ?? ""]));
}

/** A link to here with these changes; an empty value takes a key away. */
function link(changes) {
  const now = { ...address(), ...changes };
  const told = new URLSearchParams();
  for (const key of KEYS) if (now[key] !== "" && now[key] !== undefined && now[key] !== null) told.set(key, now[key]);
  return `#${told.toString().replaceAll("%2F", "/")}`;
}

/** Change the address without a new step in the browser's own history. */
function amend(changes) {
  history.replaceState(null, "", link(changes));
}

const KINDS_OF_STATE = {
  waiting: ["create_pending", "create_unknown", "reconciliation", "queued"],
  going: ["accepted", "observing", "running"],
  collecting: ["result_collecting"],
  stopping: ["cancel_requested", "cancelling", "result_timed_out", "cancellation_unconfirmed"],
  good: ["succeeded"],
  bad: ["failed", "result_unavailable", "result_validation_failed"],
  over: ["cancelled", "withdrawn"],
  person: ["human_decision_required"],
};
const KIND_OF_STATE = new Map(Object.entries(KINDS_OF_STATE).flatMap(([kind, states]) => states.map((state) => [state, kind])));

const stateClass = (state) => `state-${KIND_OF_STATE.get(state) ?? "other"}`;
const spoken = (word) => word.replaceAll("_", " ");
