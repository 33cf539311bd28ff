// Goes where the address says.

function go() {
  const wanted = address();
  const number = NUMBER_OF.get(wanted.run);
  const isRun = number !== undefined;
  byId("overview").hidden = isRun;
  byId("run").hidden = !isRun;
  if (!isRun) {
    const before = shown?.number;
    leaveRun();
    applyFilters();
    document.title = `${INDEX.length} runs · jobsworth`;
    if (before !== undefined) document.querySelector(`[data-run="${before}"]`)?.focus();
    return;
  }
  const isNew = shown?.number !== number;
  showRun(number);
  document.title = `${INDEX[number].verdict} · ${INDEX[number].id} · jobsworth`;
  if (wanted.fact !== "") {
    const seq = Number(wanted.fact);
    if (showFact(seq)) return;
    if (wanted.view !== "facts" && shown.run.facts.some((fact) => fact.seq === seq)) {
      amend({ view: "facts" });
      showRun(number);
      showFact(seq);
      return;
    }
  }
  if (isNew) {
    scrollTo(0, 0);
    byId("run-title").focus({ preventScroll: true });
  }
}

addEventListener("hashchange", go);
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || byId("run").hidden || event.target.closest("input, select")) return;
  location.hash = link({ run: "", fact: "", view: "" });
});
byId("home").addEventListener("click", (event) => {
  event.preventDefault();
  location.hash = link({ run: "", fact: "", view: "" });
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // its target is no address of a run
  byId("main").focus();
});

const theme = byId("theme");
theme.addEventListener("change", () => {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

applyFilters();
go();
