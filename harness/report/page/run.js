// A run: what it came to, its findings, and its rows, with the drawing behind them and the words beside it.

const POINTS = ["before_receipt", "received", "committed", "answering", "delivered"];
const STORE_POINTS = ["received", "committed"];
const GAP = 0.5; // seconds without a row that are worth a break
const MOST_NAMED = 2; // findings that a row proves and names

let shown = null; // {number, run, places, rows, list, stage, watcher}

function leaveRun() {
  shown?.watcher.disconnect();
  shown = null;
  byId("run").replaceChildren();
}

function showRun(number) {
  const view = address().view === "facts" ? "facts" : "story";
  if (shown?.number === number && shown.view === view) return;
  leaveRun();
  const run = runOf(number);
  const list = el("ol", { class: "rows", "aria-label": view === "facts" ? "Every fact, oldest first" : "The story, oldest first" });
  const rows = (view === "facts" ? rowsOfFacts : rowsOfStory)(run);
  const places = plan(run, rows);
  let before = -1;
  for (const row of rows) {
    row.node = rowNode(run, row, before);
    before = row.at;
    list.append(row.node);
  }
  if (rows.length) rows[0].node.tabIndex = 0;
  const stage = el("div", { class: "stage" }, list);
  const chart = el("div", { class: "chart" }, el("div", { class: "chart-head" }, el("span", { class: "time" }, "time"), heading(places), el("span", { class: "words-head" }, view === "facts" ? "every fact" : "the story")), stage);
  chart.style.setProperty("--drawing", `${places.width}px`);
  byId("run").replaceChildren(...about(number, run, view), chart, ...appendix(run));
  const watcher = new ResizeObserver(() => redraw());
  shown = { number, view, run, places, rows, list, stage, chart, watcher };
  watcher.observe(list);
  list.addEventListener("keydown", onRowKey);
  list.addEventListener("click", onRowClick);
  mark();
  redraw();
}

function redraw() {
  if (!shown) return;
  const { run, places, rows, list, stage, chart } = shown;
  chart.classList.toggle("wide", chart.scrollWidth > chart.clientWidth + 1 || chart.classList.contains("wide") && places.width + 420 > chart.clientWidth);
  stage.querySelector(":scope > svg")?.remove();
  stage.prepend(drawing(run, places, rows, list.offsetHeight));
}

// Rows: {at, actor, text, mark, facts, first, times, pins, finding, gone}

function rowsOfStory(run) {
  const pins = pinsOf(run);
  const points = new Map(run.facts.filter((fact) => fact.raw.fact === "fault_struck").map((fact) => [fact.seq, fact.raw]));
  let told = -1;
  return run.story.map((line) => {
    const finding = line.finding ?? -1;
    if (line.facts.length) told = line.facts[0];
    return {
      ...line,
      proof: finding < 0 ? [] : run.outcome.findings[finding].facts,
      first: told,
      times: line.facts.length > 3 ? Math.floor(line.facts.length / 2) : 1,
      pins: finding < 0 ? [...new Set(line.facts.flatMap((seq) => pins.get(seq) ?? []))] : [finding],
      finding,
      struck: points.get(line.facts[0]),
    };
  });
}

function rowsOfFacts(run) {
  const pins = pinsOf(run);
  const rows = [];
  let expected = 0;
  for (const fact of run.facts) {
    if (fact.seq > expected) rows.push({ at: fact.at, actor: "", text: `${plural(fact.seq - expected, "fact")} not in this page`, mark: "gone", facts: [], proof: [], first: expected, times: 1, pins: [], finding: -1 });
    expected = fact.seq + 1;
    const struck = fact.raw.fact === "fault_struck" ? fact.raw : undefined;
    rows.push({ at: fact.at, actor: fact.actor, text: fact.text, mark: struck ? "fault" : "plain", facts: [fact.seq], proof: [], first: fact.seq, times: 1, pins: pins.get(fact.seq) ?? [], finding: -1, struck });
    run.outcome.findings.forEach((finding, number) => {
      if (finding.facts.at(-1) === fact.seq) rows.push({ at: fact.at, actor: finding.rule, text: `${finding.requirement}: ${finding.message}`, mark: "finding", facts: [], proof: finding.facts, first: fact.seq, times: 1, pins: [number], finding: number });
    });
  }
  return rows;
}

function pinsOf(run) {
  const pins = new Map();
  run.outcome.findings.forEach((finding, number) => finding.facts.forEach((seq) => pins.set(seq, [...(pins.get(seq) ?? []), number])));
  return pins;
}

/** When it happened, said once for all that happened at that moment. */
function time(row, before) {
  const isNew = row.mark !== "finding" && row.at !== before;
  return el("span", { class: "time" }, isNew && [row.at.toFixed(3), el("span", { class: "unit" }, " s")]);
}

function rowNode(run, row, before) {
  const gap = row.at - Math.max(before, 0);
  const seq = row.facts[0];
  const node = el("li", { class: `row mark-${row.mark}${row.pins.length ? " pinned" : ""}${gap >= GAP ? " after-gap" : ""}`, tabindex: "-1", "data-facts": row.facts.join(" ") });
  if (gap >= GAP) node.dataset.gap = `${gap.toFixed(gap < 10 ? 2 : 0)} s later`;
  const words = el("div", { class: "words" }, el("span", { class: "who" }, row.actor || "…"), " ", el("span", { class: "said" }, row.finding < 0 ? row.text : linked(row.text, run)));
  if (row.mark === "next") put(words, " ", el("span", { class: "chip" }, "first act after the fault"));
  if (row.struck) put(words, strip(row.struck));
  if (row.finding >= 0) put(words, " ", proofs(row.proof, row.text));
  else if (row.pins.length) put(words, " ", row.pins.map((number) => proves(run, number, row.pins.length <= MOST_NAMED)));
  const side = el("span", { class: "side" });
  if (seq !== undefined) put(side, el("a", { class: "fact-link", href: link({ fact: seq }), title: "A link to this fact" }, `#${row.facts.length > 1 ? `${seq}–${row.facts.at(-1)}` : seq}`));
  node.append(time(row, before), el("span", { class: "space" }), words, side);
  return node;
}

/** A link from a fact to the last of those that prove a finding, under which the finding stands. */
function proves(run, number, named) {
  const { rule, facts } = run.outcome.findings[number];
  const text = named ? `proves ${number + 1}: ${rule}` : `proves ${number + 1}`;
  return el("a", { class: "chip proves", href: link({ fact: facts.at(-1) }), title: rule }, text);
}

/** The commit points of an exchange, and which of them the fault struck. */
function strip(struck) {
  const points = struck.endpoint === "store" ? STORE_POINTS : POINTS;
  return el("span", { class: "strip", role: "img", "aria-label": `at the commit point ${spoken(struck.point)}` }, points.map((point) => el("span", { class: point === struck.point ? "here" : "" }, point === struck.point ? spoken(point) : "")));
}

const factLink = (seq) => el("a", { href: link({ fact: seq }) }, `#${seq}`);

/** A message, with the facts it names as links. */
function linked(text, run) {
  const known = new Set(run.facts.map((fact) => fact.seq));
  return text.split(/#(\d{1,9})/).map((part, nth) => (nth % 2 === 0 ? part : known.has(Number(part)) ? factLink(part) : `#${part}`));
}

/** Links to the facts that prove a finding and that its message does not name. */
function proofs(facts, message) {
  const named = new Set([...message.matchAll(/#(\d+)/g)].map((match) => Number(match[1])));
  const others = facts.filter((seq) => !named.has(seq));
  return others.length > 0 && el("span", { class: "proofs" }, "proved by ", others.map((seq) => [factLink(seq), " "]));
}

// Around the rows

function about(number, run, view) {
  const outcome = run.outcome;
  const near = matching();
  const place = near.indexOf(number);
  const step = (offset, text) => {
    const other = near[place + offset];
    return place < 0 || other === undefined ? el("span", { class: "step quiet" }, text) : el("a", { class: "step", href: link({ run: INDEX[other].id, fact: "" }) }, text);
  };
  const workers = INDEX[number].workers;
  const worker = el("select", { id: "run-worker" }, el("option", { value: "" }, "all"), workers.map((name) => el("option", { value: name }, name)));
  const search = el("input", { type: "search", id: "run-q", autocomplete: "off", spellcheck: "false", placeholder: "in this run" });
  worker.value = workers.includes(address().worker) ? address().worker : "";
  search.value = address().q;
  worker.addEventListener("change", () => { amend({ worker: worker.value }); mark(); redraw(); });
  search.addEventListener("input", () => { amend({ q: search.value }); mark(); });
  const kind = (name, text) => el("a", { href: link({ view: name === "story" ? "" : name }), "aria-current": view === name ? "true" : null }, text);
  return [
    el("nav", { class: "crumbs", "aria-label": "Runs" }, el("a", { href: link({ run: "", fact: "", view: "" }), id: "back" }, "← all runs"), el("span", { class: "steps" }, step(-1, "‹ previous"), place < 0 ? "" : `${place + 1} of ${near.length}`, step(1, "next ›"))),
    el("div", { class: `run-head is-${outcome.verdict}` },
      el("h2", { id: "run-title", tabindex: "-1" }, el("span", { class: `pill is-${outcome.verdict}` }, outcome.verdict), " ", outcome.scenario, " ", el("span", { class: "quiet" }, outcome.mode)),
      run.summary && el("p", { class: "summary" }, run.summary),
      outcome.findings.length === 0 && el("p", { class: "reason" }, outcome.reason),
      el("p", { class: "quiet facts-line" }, [run.subject, `seed ${outcome.seed}`, `${plural(outcome.rules_judged, "rule")} judged`, `${outcome.faults_struck} of ${plural(outcome.faults_planned, "fault")} struck`, plural(run.facts_in_all, "fact")].join(" · "), run.facts.length < run.facts_in_all && ` (${plural(run.facts.length, "fact")} in this page)`),
      el("p", { class: "again" }, el("span", { class: "quiet" }, "Run it again "), el("code", { tabindex: "0" }, outcome.reproduce))),
    outcome.findings.length > 0 && findings(run),
    el("div", { class: "tools", role: "group", "aria-label": "What is shown" },
      el("span", { class: "switch" }, kind("story", "Story"), kind("facts", "Every fact")),
      el("label", {}, "Worker ", worker),
      el("label", {}, "Find ", search),
      el("output", { id: "found", "aria-live": "polite" }),
      el("span", { class: "quiet keys" }, el("kbd", {}, "↑"), " ", el("kbd", {}, "↓"), " rows ", el("kbd", {}, "n"), " ", el("kbd", {}, "p"), " faults and findings ", el("kbd", {}, "Enter"), " details ", el("kbd", {}, "Esc"), " back")),
    legend(),
  ].filter(Boolean);
}

function findings(run) {
  const left = run.findings_in_all - run.outcome.findings.length;
  const numbered = run.outcome.findings.map((finding, number) => ({ finding, number }));
  const item = ({ finding, number }, more = []) => el("li", {}, el("span", { class: "number" }, number + 1), el("strong", {}, finding.rule), " ", el("span", { class: "chip" }, finding.requirement), " ", el("span", { class: "said" }, linked(finding.message, run)), " ", proofs(finding.facts, finding.message), more.length > 0 && el("details", {}, el("summary", {}, `${more.length} more of this rule`), el("ol", {}, more.map((one) => item(one)))));
  const rules = [...new Set(numbered.map((one) => one.finding.rule))];
  return el("section", { class: "findings", "aria-label": "Findings" },
    el("h3", {}, plural(run.findings_in_all, "finding")),
    el("ol", {}, rules.map((rule) => {
      const [first, ...more] = numbered.filter((one) => one.finding.rule === rule);
      return item(first, more);
    })),
    left > 0 && el("p", { class: "quiet" }, `${plural(left, "more finding")} not in this page`));
}

function legend() {
  const sample = (label, kind, reach) => {
    const picture = svg("svg", { width: 66, height: 18, "aria-hidden": "true" });
    const places = { lanes: new Map([["a", { x: 0 }], ["network", { x: 33 }], ["b", { x: 66 }]]) };
    drawStroke(picture, places, { kind, start: "b", end: "a", label: "", reach }, 9, "");
    return el("li", {}, picture, label);
  };
  const piece = (label, ...shapes) => el("li", {}, svg("svg", { width: 26, height: 20, "aria-hidden": "true" }, ...shapes), label);
  return el("details", { class: "legend" }, el("summary", {}, "What the signs mean"), el("ul", {},
    sample("answer", "answer", "arrives"), sample("lost", "answer", "lost"), sample("cut short", "answer", "cut"), sample("connection reset", "answer", "reset"), sample("nobody waits", "answer", "abandoned"),
    piece("fault, at its commit point", svg("g", { class: "glyph is-fault" }, svg("path", { class: "burst", d: burst(13, 10, 9, 5.5) }))),
    piece("holds the lease", svg("rect", { class: "lease", x: 9, y: 1, width: 8, height: 18, rx: 3 })),
    piece("frozen", svg("rect", { class: "frozen", x: 4, y: 1, width: 18, height: 18, rx: 4 })),
    piece("killed or crashed", svg("g", { class: "glyph is-ended" }, svg("circle", { cx: 13, cy: 10, r: 8 }), svg("path", { class: "cross", d: "M9 6L17 14M17 6L9 14" }))),
    piece("proves a finding", svg("g", { class: "pin" }, svg("circle", { cx: 13, cy: 10, r: 7.5 })))));
}

function appendix(run) {
  const idle = run.idle;
  const started = run.facts.find((fact) => fact.raw.fact === "run_started");
  return [
    Object.keys(idle).length > 0 && el("details", { class: "appendix" }, el("summary", {}, `${plural(Object.values(idle).flat().length, "rule")} had nothing to judge in this run`), Object.entries(idle).map(([needs, rules]) => el("p", {}, el("strong", {}, `judged from the ${needs}`), " ", rules.join(", ")))),
    Object.entries(run.logs).map(([name, lines]) => el("details", { class: "appendix", open: run.outcome.verdict !== "pass" }, el("summary", {}, `What ${name} wrote to standard error, at the end`), el("pre", { tabindex: "0" }, lines.join("\n")))),
    started && el("details", { class: "appendix" }, el("summary", {}, "Contract and timing"), raw({ contract: started.raw.contract, timing: started.raw.timing })),
  ].flat().filter(Boolean);
}

// Marks, details and keys

function mark() {
  if (!shown) return;
  const { q, worker } = address();
  const words = wordsOf(q);
  const whose = INDEX[shown.number].workers.includes(worker) ? worker : "";
  const facts = new Map(shown.run.facts.map((fact) => [fact.seq, fact.raw]));
  let found = 0;
  for (const row of shown.rows) {
    const told = `${row.actor} ${row.text}`.toLowerCase();
    const hit = words.length > 0 && words.every((word) => told.includes(word));
    const others = row.facts.map((seq) => facts.get(seq)?.worker).filter(Boolean);
    row.node.classList.toggle("hit", hit);
    row.node.classList.toggle("dim", whose !== "" && others.length > 0 && !others.includes(whose));
    found += hit ? 1 : 0;
  }
  byId("found").textContent = words.length ? `${plural(found, "row")} here` : "";
}

function raw(value) {
  const list = el("dl", { class: "raw" });
  for (const [key, item] of Object.entries(value)) {
    const nested = item !== null && typeof item === "object" && !Array.isArray(item);
    list.append(el("dt", {}, key), el("dd", {}, nested ? raw(item) : Array.isArray(item) ? JSON.stringify(item) : String(item)));
  }
  return list;
}

function openDetails(node, open = !node.querySelector(".details")) {
  node.querySelector(".details")?.remove();
  node.classList.toggle("open", open);
  if (!open) return;
  const facts = new Map(shown.run.facts.map((fact) => [fact.seq, fact]));
  const wanted = node.dataset.facts.split(" ").filter(Boolean).map((seq) => facts.get(Number(seq))).filter(Boolean);
  node.querySelector(".words").append(el("div", { class: "details" }, wanted.map((fact) => el("section", {}, el("h4", {}, `#${fact.seq} · ${fact.at.toFixed(6)} s`), raw(fact.raw)))));
}

function onRowClick(event) {
  const row = event.target.closest(".row");
  if (!row || event.target.closest("a, .details") || String(getSelection())) return;
  focusRow(row);
  if (row.dataset.facts) openDetails(row);
}

function focusRow(row, scroll = true) {
  for (const other of shown.rows) other.node.tabIndex = -1;
  row.tabIndex = 0;
  row.focus({ preventScroll: true });
  if (scroll) row.scrollIntoView({ block: "nearest" });
  const first = row.dataset.facts.split(" ")[0];
  if (first !== "") amend({ fact: first });
}

const isNotable = (row) => row.mark === "fault" || row.mark === "finding";

function onRowKey(event) {
  const row = event.target.closest(".row");
  if (!row || event.target !== row || event.ctrlKey || event.metaKey || event.altKey) return;
  const nodes = shown.rows.map((one) => one.node);
  const here = nodes.indexOf(row);
  const notable = (list) => list.find((place) => isNotable(shown.rows[place]));
  const places = [...nodes.keys()];
  const goals = {
    ArrowDown: here + 1,
    j: here + 1,
    ArrowUp: here - 1,
    k: here - 1,
    Home: 0,
    End: nodes.length - 1,
    n: notable(places.slice(here + 1)),
    p: notable(places.slice(0, here).reverse()),
  };
  if (event.key === "Enter" || event.key === " ") {
    if (row.dataset.facts) openDetails(row);
  } else if (event.key in goals) {
    const goal = nodes[goals[event.key]];
    if (goal) focusRow(goal);
  } else {
    return;
  }
  event.preventDefault();
}

/** Bring a fact into sight, with its details. Says whether this view has it. */
function showFact(seq) {
  const row = shown.rows.find((one) => one.facts.includes(seq));
  if (!row) return false;
  for (const other of shown.rows) other.node.classList.remove("target");
  row.node.classList.add("target");
  openDetails(row.node, true);
  focusRow(row.node, false);
  row.node.scrollIntoView({ block: "center" });
  amend({ fact: String(seq) });
  return true;
}
