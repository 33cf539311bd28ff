"""The page in a browser: it renders, it can be filtered, linked into and used by keyboard, and nothing leaves it."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from harness.report.html import Shown, page, write
from harness.report.machine import report_of
from harness.runner import run
from harness.subjects import resolve
from scenarios.loading import find, load_catalogue
from tests.end_to_end.browser import DOWN, END, ENTER, ESCAPE, HOME, TAB, UP, Browser, chromium
from tests.harness.hostile import hostile_run

LOOP = "tests.broken_clients.script_with_a_while_loop:build"
STORIES = ("stale-lease", "lost-create-response", "create-answer-cut", "create-connection-reset", "forged-webhook")


def programs() -> tuple[str, str]:
    """Chromium and its driver. Without them the tests are skipped, unless they must run."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        reason = "there is no Chromium with chromedriver here"
        if "browser" in os.environ.get("JOBSWORTH_TESTS_MUST_RUN", "").split():
            pytest.fail(reason)
        pytest.skip(reason)
    return browser, driver


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    binary, driver = programs()
    with chromium(
        binary,
        driver,
        "--headless",
        "--no-sandbox",  # for those who test as root; what it opens is our own
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--window-size=1440,1000",
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
    ) as shown:
        yield shown


def made(runs: list[Shown], folder: Path) -> Path:
    report = report_of("a-client", 0, tuple(each.outcome for each in runs))
    return write(folder, page(runs, report))


def ran(name: str, spec: str | None = None) -> Shown:
    scenario = find(name)
    result = run(scenario, resolve(spec))
    # One subject by name, so that runs are called by scenario and mode alone.
    return Shown(subject="a-client", outcome=result.outcome, history=result.history, summary=scenario.summary)


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that pass, and as the second one of lost-create-response one that fails."""
    runs = [*map(ran, STORIES), ran("lost-create-response", LOOP)]
    return made(runs, tmp_path_factory.mktemp("ordinary"))


FAILED = "run=lost-create-response/simulated/2"


@pytest.fixture
def quiet(browser: Browser) -> Iterator[Browser]:
    """A browser whose console stays empty."""
    yield browser
    assert browser.logged() == []


# -- renders


def test_the_table_shows_every_scenario_with_its_verdict(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary)
    assert set(quiet.texts("#runs tbody .name")) == set(STORIES)
    assert sorted(quiet.texts("#runs tbody .pill")) == ["fail", *["pass"] * 5]
    assert quiet.texts("#runs tbody .name")[0] == "lost-create-response"
    assert quiet.one("#matches").text == "6 runs"


def test_no_run_is_drawn_before_it_is_looked_at(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary)
    assert quiet.all(".drawing") == []
    quiet.click("#runs .cell.is-fail")
    assert len(quiet.all(".drawing")) == 1
    assert quiet.shown("#overview h1") == []


def test_nothing_is_asked_of_the_network(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, FAILED)
    asked = {url for url in quiet.requests() if not url.startswith("data:")}
    assert asked == {ordinary.as_uri()}


def test_the_story_stands_beside_the_drawing(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "run=stale-lease/simulated")
    assert quiet.texts(".lane-name b")[:3] == ["op-1", "harness", "w1"]
    assert "is stopped: frozen, its timers run on" in " ".join(quiet.texts(".row .said"))
    rows = quiet.js("return [...document.querySelectorAll('.row')].map((row) => row.offsetTop + row.offsetHeight / 2)")
    bolt = quiet.js(
        "const box = document.querySelector('.drawing .burst').getBBox();"
        "const row = document.querySelector('.row.mark-fault');"
        "return [box.y + box.height / 2, row.offsetTop, row.offsetTop + row.offsetHeight]"
    )
    assert bolt[1] < bolt[0] < bolt[2]
    assert rows == sorted(rows)
    assert quiet.all(".drawing .frozen")
    assert quiet.all(".drawing .lease")


@pytest.mark.parametrize(
    ("story", "reach"),
    [("lost-create-response", "lost"), ("create-answer-cut", "cut"), ("create-connection-reset", "reset")],
)
def test_an_answer_that_did_not_come_through_stops_short(
    quiet: Browser, ordinary: Path, story: str, reach: str
) -> None:
    quiet.open(ordinary, f"run={story}/simulated")
    ends = quiet.js(
        f"const line = document.querySelector('.drawing .is-answer.reach-{reach} line:not(.missing)');"
        "const worker = document.querySelector('.drawing .alive');"
        "return [Number(line.getAttribute('x2')), Number(worker.getAttribute('x1'))]"
    )
    assert ends[0] > ends[1] + 40
    assert quiet.all(f".drawing .is-answer.reach-{reach} .cross")


def test_bands_show_local_and_remote_state(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "run=stale-lease/simulated")
    titles = quiet.js("return [...document.querySelectorAll('.drawing .band title')].map((title) => title.textContent)")
    assert "op-1: result collecting" in titles
    assert any(title.startswith("job_") and title.endswith(": succeeded") for title in titles)


def test_a_band_begins_at_the_row_that_tells_of_it(quiet: Browser, ordinary: Path) -> None:
    """Of a job, too, whose making is folded into the create's own row."""
    quiet.open(ordinary, "run=stale-lease/simulated")
    job, top, bottom = quiet.js(
        "const bands = [...document.querySelectorAll('.drawing .band')];"
        "const job = bands.find((band) => band.textContent.startsWith('job_')).querySelector('rect');"
        "const row = [...document.querySelectorAll('.row')].find((one) => one.textContent.includes('create of op-1'));"
        "return [Number(job.getAttribute('y')), row.offsetTop, row.offsetTop + row.offsetHeight]"
    )
    assert top < job < bottom


def test_a_finding_is_pinned_to_the_facts_that_prove_it(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, FAILED)
    rules = quiet.texts(".findings strong")
    assert "one-job-per-operation" in rules
    number = str(rules.index("one-job-per-operation") + 1)
    pins = quiet.js("return [...document.querySelectorAll('.drawing .pin text')].map((pin) => pin.textContent)")
    assert pins.count(number) >= 3  # two jobs, and the finding itself
    assert len(quiet.all(".row.mark-finding")) == len(rules)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_in_dark(quiet: Browser, ordinary: Path, scheme: str) -> None:
    """WCAG 2.2 asks for a contrast of 4.5."""
    emulate = partial(quiet.protocol, "Emulation.setEmulatedMedia")
    emulate(features=[{"name": "prefers-color-scheme", "value": scheme}])
    try:
        quiet.open(ordinary, FAILED)
        worst = quiet.js(CONTRASTS)
    finally:
        emulate(features=[])
    assert [told for told in worst if told["contrast"] < 4.5] == []
    assert len(worst) > 20


CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
canvas.canvas.width = canvas.canvas.height = 1;
const over = (colours) => {
  canvas.clearRect(0, 0, 1, 1);
  for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const told = [];
const seen = new Set();
for (const node of document.querySelectorAll("header *, main *")) {
  if (!node.checkVisibility() || node.closest("svg")) continue;
  if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
  const grounds = [];
  for (let up = node; up; up = up.parentElement) grounds.unshift(getComputedStyle(up).backgroundColor);
  const key = `${getComputedStyle(node).color} on ${grounds.join()}`;
  if (seen.has(key)) continue;
  seen.add(key);
  const [one, other] = [light(over(grounds)), light(over([...grounds, getComputedStyle(node).color]))];
  told.push({ contrast: (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), node: node.className, key });
}
return told;
"""


def test_the_theme_can_be_chosen_against_the_system(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary)
    ground = "return getComputedStyle(document.documentElement).backgroundColor"
    quiet.one("#theme").choose("light")
    light = quiet.js(ground)
    quiet.one("#theme").choose("dark")
    assert quiet.js(ground) != light


# -- filters


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("verdict", "fail", ["lost-create-response"]),
        ("rule", "one-job-per-operation", ["lost-create-response"]),
        ("fault", "answer_cut", ["create-answer-cut"]),
        ("worker", "w2", ["stale-lease"]),
    ],
)
def test_a_filter_leaves_the_runs_that_match(
    quiet: Browser, ordinary: Path, name: str, value: str, left: list[str]
) -> None:
    quiet.open(ordinary)
    quiet.one(f"#filters [name={name}]").choose(value)
    assert quiet.shown("#runs tbody .name") == left
    assert quiet.one("#matches").text == "1 of 6 runs"
    assert f"{name}={value}" in quiet.address()


def test_text_is_looked_for_in_all_that_a_run_tells(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary)
    quiet.one("#filters [name=q]").type("frozen TIMERS")
    assert quiet.shown("#runs tbody .name") == ["stale-lease"]
    quiet.click("#filters [type=reset]")
    assert len(quiet.shown("#runs tbody .name")) == len(STORIES)


def test_where_nothing_matches_the_filters_can_be_cleared(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "q=no+such+word")
    assert quiet.shown("#runs tbody .name") == []
    quiet.click("#clear")
    assert len(quiet.shown("#runs tbody .name")) == len(STORIES)


def test_filters_outlive_a_visit_to_a_run_and_guide_from_one_to_the_next(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "q=connection")
    names = quiet.shown("#runs tbody .name")
    quiet.click(f"#runs tr:not([hidden]) [data-run='{quiet.js(FIRST)}']")
    assert f"1 of {len(names)}" in quiet.one(".steps").text
    quiet.press(ESCAPE)
    assert quiet.shown("#runs tbody .name") == names


FIRST = "return document.querySelector('#runs [data-run]:not(.unmatched)').dataset.run"


def test_in_a_run_one_worker_can_be_followed_and_words_found(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "run=stale-lease/simulated")
    quiet.one("#run-worker").choose("w2")
    dim = quiet.texts(".row.dim .who")
    assert "w1" in dim
    assert "w2" not in dim
    quiet.one("#run-q").type("lease")
    hits = quiet.texts(".row.hit .said")
    assert len(hits) >= 2
    assert all("lease" in said for said in hits)
    assert quiet.one("#found").text == f"{len(hits)} rows here"


# -- links


def test_a_link_opens_a_run_at_a_fact(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "run=stale-lease/simulated&fact=19")
    assert quiet.focused() == "19"
    assert quiet.one(".switch [aria-current]").text == "Story"
    assert "fault_struck" in quiet.one(".row.target .details").text
    assert quiet.js(
        "const box = document.activeElement.getBoundingClientRect(); return box.top >= 0 && box.top < innerHeight"
    )


def test_a_link_to_a_fact_the_story_leaves_out_shows_every_fact(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "run=stale-lease/simulated&fact=17")
    assert quiet.focused() == "17"
    assert len(quiet.all(".row")) == 51
    assert quiet.one(".switch [aria-current]").text == "Every fact"


def test_a_link_to_what_is_not_there_shows_the_table(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "run=no-such-run&fact=x")
    assert quiet.one("#overview").is_displayed


def test_a_fact_named_in_a_finding_is_one_click_away(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, FAILED)
    proof = quiet.one(".findings a")
    seq = proof.text.removeprefix("#")
    quiet.click(proof)
    assert quiet.focused().split(" ")[0] == seq
    assert f"fact={seq}" in quiet.address()


def test_the_browsers_own_back_button_goes_back(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary)
    quiet.click("#runs .cell.is-fail")
    quiet.back()
    assert quiet.one("#overview").is_displayed


# -- keyboard


def test_all_of_it_can_be_done_by_keyboard(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary)
    quiet.press(TAB)
    assert quiet.focused("id") == "skip"
    quiet.press(ENTER)
    assert quiet.focused("id") == "main"
    quiet.js("document.querySelector('#runs .cell.is-fail').focus()")
    quiet.press(ENTER)
    assert quiet.focused("id") == "run-title"
    for _ in range(40):
        quiet.press(TAB)
        if "row" in quiet.focused("className").split():
            break
    assert quiet.focused() == "0"
    quiet.press(DOWN, DOWN)
    assert quiet.focused() == "2"
    quiet.press(UP)
    assert quiet.focused() == "1"
    quiet.press(ENTER)
    assert "worker_started" in quiet.one(".row.open .details").text
    quiet.press("n")
    assert "mark-finding" in quiet.focused("className")
    quiet.press(END)
    last = quiet.focused()
    quiet.press(DOWN)
    assert quiet.focused() == last
    quiet.press(HOME)
    assert quiet.focused() == "0"
    quiet.press(ESCAPE)
    assert quiet.one("#overview").is_displayed
    assert "is-fail" in quiet.focused("className")


def test_everything_that_takes_input_has_a_name(quiet: Browser, ordinary: Path) -> None:
    for address in ("", FAILED):
        quiet.open(ordinary, address)
        for control in quiet.all("input, select, button, a"):
            if control.is_displayed:
                assert control.accessible_name.strip(), control.html
        assert len(quiet.all("main")) == 1
        assert len([heading for heading in quiet.all("h1, h2") if heading.is_displayed]) == 1


# -- hostile


def test_what_a_hostile_client_says_is_text_and_nothing_else(quiet: Browser, tmp_path: Path) -> None:
    path = made([hostile_run()], tmp_path)
    quiet.open(path)
    quiet.click("#runs .cell")
    quiet.click(".switch a:not([aria-current])")
    for row in quiet.all(".row"):
        quiet.click(row)
    assert "<img src=x onerror='window.broken = 1'>" in quiet.one(".row .said").text
    assert quiet.js("return window.broken") is None
    assert quiet.all("img, iframe, object, embed, link:not([rel=icon])") == []
    assert {url for url in quiet.requests() if not url.startswith("data:")} == {path.as_uri()}


def test_a_hostile_search_is_text_too(quiet: Browser, ordinary: Path) -> None:
    quiet.open(ordinary, "run=stale-lease/simulated")
    quiet.one("#run-q").type("<img src=x onerror=alert(1)>")
    assert quiet.all("img") == []


def test_the_policy_stops_what_is_not_the_pages_own(browser: Browser, ordinary: Path) -> None:
    """The second lock: were there a hole, what came through it would not run."""
    browser.open(ordinary)
    browser.js(
        "const script = document.createElement('script'); script.textContent = 'window.broken = 1';"
        "document.body.append(script);"
    )
    assert browser.js("return window.broken") is None
    assert any("Content Security Policy" in message for message in browser.logged())


# -- large


def test_a_page_with_the_whole_catalogue_twice_answers_at_once(quiet: Browser, tmp_path: Path) -> None:
    runs = [ran(name) for name, scenario in load_catalogue().items() if "simulated" in scenario.modes]
    path = made(runs * 2, tmp_path)
    quiet.open(path)
    assert quiet.js("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd") < 3_000
    search = (
        "const field = document.querySelector('#filters [name=q]'); field.value = 'frozen';"
        "const began = performance.now();"
        "field.dispatchEvent(new Event('input', { bubbles: true })); document.body.offsetHeight;"
        "return performance.now() - began"
    )
    assert quiet.js(search) < 2_000
    assert path.stat().st_size < 8_000_000


def test_a_run_on_a_narrow_screen_shows_its_words_first(quiet: Browser, ordinary: Path) -> None:
    quiet.protocol("Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=False)
    try:
        quiet.open(ordinary, "run=stale-lease/simulated")
        right = quiet.js("return document.querySelector('.row .words').getBoundingClientRect().right")
        page_width = quiet.js("return document.documentElement.scrollWidth")
    finally:
        quiet.protocol("Emulation.clearDeviceMetricsOverride")
    assert right <= 420
    assert page_width <= 420
