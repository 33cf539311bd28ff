// Filters: kept in the address, shown in the form, applied to the table.

const form = byId("filters");
const FILTERS = ["q", "verdict", "rule", "fault", "worker"];

function matches(number, wanted) {
  const run = INDEX[number];
  if (wanted.verdict && run.verdict !== wanted.verdict) return false;
  if (wanted.rule && !run.rules.includes(wanted.rule)) return false;
  if (wanted.fault && !run.faults.includes(wanted.fault)) return false;
  if (wanted.worker && !run.workers.includes(wanted.worker)) return false;
  return wordsOf(wanted.q).every((word) => run.text.includes(word) || textOf(number).includes(word));
}

const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** The runs that match, by their numbers, in the order of the table. */
function matching() {
  const wanted = address();
  return cells().map((cell) => Number(cell.dataset.run)).filter((number) => matches(number, wanted));
}

const cells = () => [...document.querySelectorAll("#runs [data-run]")];

function applyFilters() {
  const wanted = address();
  for (const name of FILTERS) {
    const field = form.elements[name];
    if (field.value !== wanted[name]) field.value = wanted[name];
  }
  const found = new Set(matching());
  for (const cell of cells()) {
    const number = Number(cell.dataset.run);
    cell.href = link({ run: INDEX[number].id, fact: "", view: "" });
    cell.classList.toggle("unmatched", !found.has(number));
  }
  for (const row of document.querySelectorAll("#runs tbody tr")) {
    row.hidden = !row.querySelector("[data-run]:not(.unmatched)");
  }
  const filtered = FILTERS.some((name) => wanted[name]);
  byId("matches").textContent = filtered ? `${found.size} of ${plural(INDEX.length, "run")}` : plural(INDEX.length, "run");
  byId("nothing").hidden = found.size > 0 || INDEX.length === 0;
}

function takeFilters() {
  amend(Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value])));
  applyFilters();
}

form.addEventListener("input", takeFilters);
form.addEventListener("change", takeFilters); // some tools that choose for a person say no more than this
form.addEventListener("submit", (event) => event.preventDefault());

function clearFilters() {
  amend(Object.fromEntries(FILTERS.map((name) => [name, ""])));
  applyFilters();
}

form.addEventListener("reset", (event) => {
  event.preventDefault();
  clearFilters();
});
byId("clear").addEventListener("click", () => {
  clearFilters();
  form.elements.q.focus();
});
