// The drawing of a run: one SVG behind the rows, made from the places the rows have taken.

const LANE = { harness: 100, worker: 128, network: 100, provider: 128, webhooks: 110 };
const BAND = 112;
const NARROW_BAND = 24;
const MOST_WIDE_BANDS = 3;
const THREAD = 18; // between the lines on which findings hang
const MOST_THREADS = 6;
const HEAD = 20; // of an arrow's place in its row, from the top

/** On which thread each finding hangs: the first that is free from its first pin to its last. */
function threadsOf(rows) {
  const reach = new Map();
  rows.forEach((row, place) => {
    for (const number of row.pins) reach.set(number, { from: reach.get(number)?.from ?? place, to: place });
  });
  const free = [];
  const threads = new Map();
  for (const [number, { from, to }] of [...reach].sort(([, one], [, other]) => one.from - other.from)) {
    let thread = free.findIndex((until) => until < from);
    if (thread < 0) thread = free.length < MOST_THREADS ? free.length : MOST_THREADS - 1;
    free[thread] = to;
    threads.set(number, thread);
  }
  return { count: free.length, at: (number) => 12 + (threads.get(number) ?? 0) * THREAD };
}

/** Where everything stands from left to right. */
function plan(run, rows) {
  const threads = threadsOf(rows);
  const tracks = (kind) => [...new Set(run.spans.filter((span) => span.kind === kind).map((span) => span.track))];
  const bands = [];
  const lanes = new Map();
  let x = threads.count ? threads.count * THREAD + 14 : 6;
  const place = (kind) => {
    const names = tracks(kind);
    const width = names.length > MOST_WIDE_BANDS ? NARROW_BAND : BAND;
    for (const name of names) {
      bands.push({ kind, name, x, width: width - 8 });
      x += width;
    }
  };
  place("local");
  for (const lane of run.lanes) {
    lanes.set(lane.id, { ...lane, x: x + LANE[lane.kind] / 2, width: LANE[lane.kind] });
    x += LANE[lane.kind];
  }
  x += 6;
  place("remote");
  return { width: x, lanes, bands, threadAt: threads.at };
}

/** The heading over the drawing, which stays in sight. */
function heading(places) {
  const box = el("div", { class: "lanes-heading" });
  const names = [];
  const add = (x, width, kind, title, name) => {
    const node = el("span", { class: `lane-name is-${kind}`, title: `${title} ${name}` }, el("b", {}, name), title && el("i", {}, title));
    node.style.left = `${x}px`;
    node.style.width = `${width}px`;
    names.push({ x, node });
  };
  for (const band of places.bands) {
    const narrow = band.width < 60;
    add(band.x, band.width, `band${narrow ? " is-narrow" : ""}`, narrow ? "" : band.kind === "local" ? "as recorded" : "at the provider", narrow ? "" : band.name);
  }
  for (const lane of places.lanes.values()) add(lane.x - lane.width / 2, lane.width, lane.kind, "", lane.id);
  box.append(...names.sort((one, other) => one.x - other.x).map(({ node }) => node)); // as they are read
  box.style.width = `${places.width}px`;
  return box;
}

/**
 * Draw a run behind its rows.
 * @param rows what is shown, in order: {node, facts, first, findings, pins, times}.
 */
function drawing(run, places, rows, height) {
  const facts = new Map(run.facts.map((fact) => [fact.seq, fact]));
  const root = svg("svg", { class: "drawing", width: places.width, height, viewBox: `0 0 ${places.width} ${height}`, role: "img", "aria-label": "Sequence diagram. The list beside it tells the same in words." });
  const boxes = rows.map((row) => ({ row, top: row.node.offsetTop, height: row.node.offsetHeight }));
  const middle = (box) => box.top + Math.min(box.height / 2, HEAD);
  drawSpans(root, run, places, (seq, otherwise) => (seq === undefined ? otherwise : heightOf(seq, boxes, facts, middle)), height);
  for (const box of boxes) {
    const group = svg("g", { class: `on-row${box.row.node.classList.contains("dim") ? " dim" : ""}` });
    const drawn = box.row.facts.map((seq) => facts.get(seq)).filter(Boolean).slice(0, 2);
    const strokes = drawn.flatMap((fact) => fact.strokes ?? []);
    strokes.forEach((stroke, nth) => {
      const y = middle(box) + (strokes.length > 1 ? (nth ? 12 : -8) : 3);
      drawStroke(group, places, stroke, y, box.row.times > 1 && nth === strokes.length - 1 ? `${stroke.label} ×${box.row.times}` : stroke.label);
    });
    for (const fact of drawn) for (const glyph of fact.glyphs ?? []) drawGlyph(group, places, glyph, middle(box));
    root.append(group);
  }
  drawThreads(root, places, boxes, middle);
  return root;
}

/** How far down a fact is: at its row, or between two rows if it has none. */
function heightOf(seq, boxes, facts, middle) {
  const home = boxes.find(({ row }) => row.facts[0] <= seq && seq <= row.facts.at(-1));
  if (home) return middle(home);
  const after = boxes.findIndex((box) => box.row.first > seq);
  const before = boxes[(after < 0 ? boxes.length : after) - 1];
  if (!before) return 0;
  if (after < 0) return middle(before);
  const next = boxes[after];
  const at = facts.get(seq)?.at ?? before.row.at;
  const lasts = next.row.at - before.row.at;
  const part = lasts > 0 ? clamp((at - before.row.at) / lasts, 0, 1) : (seq - before.row.first) / (next.row.first - before.row.first);
  return middle(before) + part * (middle(next) - middle(before));
}

function drawSpans(root, run, places, at, height) {
  const lines = svg("g");
  for (const lane of places.lanes.values()) lines.append(svg("line", { class: `life is-${lane.kind}`, x1: lane.x, x2: lane.x, y1: 0, y2: height }));
  root.append(lines);
  const each = (kind, put) => {
    for (const span of run.spans) {
      if (span.kind !== kind) continue;
      const top = at(span.since, 0);
      put(span, top, Math.max(at(span.until, height) - top, 3), places.lanes.get(span.track)?.x ?? 0);
    }
  };
  each("alive", (span, top, size, x) => root.append(svg("line", { class: "alive", x1: x, x2: x, y1: top, y2: top + size })));
  each("frozen", (span, top, size, x) => {
    root.append(svg("rect", { class: "frozen", x: x - 12, width: 24, y: top, height: size, rx: 5 }, svg("title", {}, `${span.track} is frozen`)));
    for (let y = top + 6; y < top + size - 3; y += 7) root.append(svg("line", { class: "frost", x1: x - 9, x2: x + 9, y1: y + 4, y2: y - 4 }));
  });
  each("lease", (span, top, size, x) => root.append(svg("rect", { class: "lease", x: x - 4, width: 8, y: top, height: size, rx: 3 }, svg("title", {}, `holds the lease on ${span.label}`))));
  for (const band of places.bands) each(band.kind, (span, top, size) => span.track === band.name && drawBand(root, band, span, top, size));
}

function drawBand(root, band, span, top, size) {
  const label = spoken(span.label);
  const group = svg("g", { class: `band ${stateClass(span.label)}` }, svg("title", {}, `${span.track}: ${label}`));
  group.append(svg("rect", { x: band.x, width: band.width, y: top + 1, height: Math.max(size - 2, 2), rx: Math.min(6, size / 3) }));
  if (band.width >= 60) {
    if (size >= 15) group.append(svg("text", { x: band.x + band.width / 2, y: top + Math.min(size / 2 + 4, 16), "text-anchor": "middle" }, shorten(label, band.width - 8, 5.6)));
  } else if (size > label.length * 6 + 8) {
    const x = band.x + band.width / 2 + 4;
    group.append(svg("text", { x, y: top + 8, transform: `rotate(90 ${x - 8} ${top + 8})` }, label));
  }
  root.append(group);
}

const shorten = (text, width, each = 6.1) => (text.length * each <= width ? text : `${text.slice(0, Math.max(Math.floor(width / each) - 1, 1))}…`);

function drawStroke(group, places, stroke, y, label) {
  const from = places.lanes.get(stroke.start);
  const to = places.lanes.get(stroke.end);
  if (!from || !to) return;
  const reach = stroke.reach ?? "arrives";
  const network = places.lanes.get("network");
  const way = Math.sign(to.x - from.x) || 1;
  const start = from.x + way * 5;
  let end = to.x - way * 6;
  if (reach === "lost" || reach === "reset") {
    // It dies in the network, or right where it began if that is behind it.
    const between = (network.x - from.x) * way > 30 && (to.x - network.x) * way > 30;
    end = between ? network.x : from.x + way * Math.min(58, Math.abs(to.x - from.x) / 2);
  } else if (reach === "cut") {
    end = to.x - way * Math.abs(to.x - (way < 0 ? Math.min(network.x, from.x) : Math.max(network.x, from.x))) * 0.5;
  } else if (reach === "abandoned") {
    end = to.x - way * 16;
  }
  const classes = `stroke is-${stroke.kind} reach-${reach}`;
  const line = svg("g", { class: classes }, svg("line", { x1: start, x2: end, y1: y, y2: y }));
  line.append(...tip(reach, end, y, way));
  if (reach === "lost" || reach === "reset" || reach === "cut") line.append(svg("line", { class: "missing", x1: end + way * 11, x2: to.x - way * 6, y1: y, y2: y }));
  const low = Math.min(start, end);
  const room = Math.abs(end - start);
  const text = shorten(label, Math.max(room - 4, 70));
  const x = room < text.length * 6.1 ? (way > 0 ? low + 4 : low + room - 4) : low + room / 2;
  line.append(svg("text", { class: "label", x, y: y - 4, "text-anchor": room < text.length * 6.1 ? (way > 0 ? "start" : "end") : "middle" }, svg("title", {}, `${stroke.label}: ${reach}`), text));
  group.append(line);
}

/** What stands at the end of a stroke: a head, a cross, a tear, a broken connection, or a ring where nobody waits. */
function tip(reach, x, y, way) {
  const path = (d, name = "") => svg("path", { class: `tip ${name}`, d });
  switch (reach) {
    case "lost":
      return [path(`M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x + 5} ${y - 5}L${x - 5} ${y + 5}`, "cross")];
    case "reset":
      return [path(`M${x - 1} ${y - 8}L${x + 4} ${y - 2}L${x - 4} ${y + 2}L${x + 1} ${y + 8}`, "cross"), path(`M${x + way * 8} ${y - 7}V${y + 7}`, "cross")];
    case "cut":
      return [path(`M${x} ${y - 8}q4 4 0 8t0 8`, "cross"), path(`M${x + way * 5} ${y - 8}q4 4 0 8t0 8`, "cross")];
    case "abandoned":
      return [svg("circle", { class: "tip ring", cx: x + way * 5, cy: y, r: 4.5 })];
    default:
      return [path(`M${x - way * 8} ${y - 4.5}L${x} ${y}L${x - way * 8} ${y + 4.5}Z`, "head")];
  }
}

// Where in its lane a fault stands, so that those at one lane but at different commit points stand apart.
const SHIFT = { received: -22, committed: 0, answering: 0, before_receipt: 0, delivered: 0 };

function drawGlyph(group, places, glyph, y) {
  const lane = places.lanes.get(glyph.lane);
  if (!lane) return;
  const x = lane.x;
  const width = lane.width - 8;
  const node = svg("g", { class: `glyph is-${glyph.kind} ${glyph.kind === "state" || glyph.kind === "moved" ? stateClass(glyph.label) : ""}` }, svg("title", {}, spoken(glyph.label || glyph.kind)));
  switch (glyph.kind) {
    case "fault": {
      const at = x + (SHIFT[glyph.point] ?? 0);
      node.append(svg("path", { class: "burst", d: burst(at, y, 12, 7.5) }), svg("path", { class: "bolt", d: `M${at + 1.5} ${y - 7}L${at - 4} ${y + 1}H${at - 0.5}L${at - 1.5} ${y + 7}L${at + 4} ${y - 1.5}H${at + 0.5}Z` }));
      break;
    }
    case "healed":
      node.append(svg("line", { x1: 0, x2: places.width, y1: y, y2: y }), svg("circle", { cx: x, cy: y, r: 5 }));
      break;
    case "started":
    case "resumed":
      node.append(svg("path", { d: `M${x - 4} ${y - 6}L${x + 6} ${y}L${x - 4} ${y + 6}Z` }));
      break;
    case "frozen":
      node.append(svg("path", { d: `M${x - 5} ${y - 6}h3.5v12h-3.5zM${x + 1.5} ${y - 6}h3.5v12h-3.5z` }));
      break;
    case "ended":
      if (glyph.label === "stopped") node.append(svg("rect", { x: x - 5, y: y - 5, width: 10, height: 10 }));
      else node.append(svg("circle", { cx: x, cy: y, r: 9 }), svg("path", { class: "cross", d: `M${x - 4} ${y - 4}L${x + 4} ${y + 4}M${x + 4} ${y - 4}L${x - 4} ${y + 4}` }));
      break;
    case "begin":
    case "end":
    case "note":
    case "reaped":
      node.append(svg("circle", { cx: x, cy: y, r: 4 }));
      break;
    default: {
      const text = shorten(glyph.kind === "created" ? glyph.label : spoken(glyph.label), width - 12, 5.9);
      const size = clamp(text.length * 5.9 + 14, 24, width);
      node.append(svg("rect", { x: x - size / 2, y: y - 9, width: size, height: 18, rx: 9 }), svg("text", { x, y: y + 3.8, "text-anchor": "middle" }, text));
    }
  }
  group.append(node);
}

function burst(x, y, outer, inner) {
  const points = Array.from({ length: 18 }, (_, nth) => {
    const angle = (nth * Math.PI) / 9;
    const reach = nth % 2 ? inner : outer;
    return `${(x + reach * Math.sin(angle)).toFixed(1)} ${(y - reach * Math.cos(angle)).toFixed(1)}`;
  });
  return `M${points.join("L")}Z`;
}

/** Each finding is a thread with a numbered pin at every fact that proves it. */
function drawThreads(root, places, boxes, middle) {
  const ends = new Map();
  for (const box of boxes) {
    for (const number of box.row.pins) {
      const y = middle(box);
      ends.set(number, [...(ends.get(number) ?? []), y]);
    }
  }
  for (const [number, heights] of ends) {
    const x = places.threadAt(number);
    root.append(svg("line", { class: "thread", x1: x, x2: x, y1: heights[0], y2: heights.at(-1) }));
    for (const y of heights) root.append(svg("g", { class: "pin" }, svg("circle", { cx: x, cy: y, r: 7.5 }), svg("text", { x, y: y + 3.4, "text-anchor": "middle", class: number >= 9 ? "small" : null }, number + 1)));
  }
}
