"""Chromium, spoken to through its driver by the WebDriver protocol (https://www.w3.org/TR/webdriver2/): as much of it
as looking at a page takes.

Not by way of Selenium, which brings Trio along: wherever that is installed httpcore2 loads it, and each program that is
started here would take half as long again to come up.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import httpx2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

ANSWER_S: Final = 60.0
"""How long a command may take; the first, which starts Chromium, takes seconds on a busy machine."""

TAB, ENTER, ESCAPE, END, HOME, UP, DOWN = "\ue004", "\ue007", "\ue00c", "\ue010", "\ue011", "\ue013", "\ue015"
"""Keys without a character, as section 17.4.2 of the protocol has them."""

_ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"
_STARTED: Final = "started successfully on port "


class Refused(Exception):
    """The driver could not do as it was told: there is no such element, or nothing that can be clicked there."""


class Element:
    """One element of the page that is shown."""

    def __init__(self, browser: Browser, known: Mapping[str, str]) -> None:
        self._browser = browser
        self._path = f"element/{known[_ELEMENT]}"

    def _get(self, what: str) -> Any:
        return self._browser.get(f"{self._path}/{what}")

    @property
    def text(self) -> str:
        """What a reader sees of it."""
        return str(self._get("text"))

    @property
    def is_displayed(self) -> bool:
        return bool(self._get("displayed"))

    @property
    def accessible_name(self) -> str:
        return str(self._get("computedlabel"))

    @property
    def html(self) -> str:
        return str(self._get("property/outerHTML"))

    def click(self) -> None:
        self._browser.post(f"{self._path}/click")

    def type(self, text: str) -> None:
        self._browser.post(f"{self._path}/value", text=text)

    def choose(self, option: str) -> None:
        """Choose of a select element the option with this text."""
        options = self._browser.post(f"{self._path}/elements", using="css selector", value="option")
        (chosen,) = [each for each in (Element(self._browser, found) for found in options) if each.text == option]
        chosen.click()


class Browser:
    """Chromium with one page open, with what it logs and what it asks the network for."""

    def __init__(self, http: httpx2.Client, session: str) -> None:
        self._http = http
        self._session = session

    def get(self, what: str) -> Any:
        return _value(self._http.get(f"/session/{self._session}/{what}"))

    def post(self, what: str, **parameters: Any) -> Any:
        return _value(self._http.post(f"/session/{self._session}/{what}", json=parameters))

    def quit(self) -> None:
        _value(self._http.delete(f"/session/{self._session}"))

    def open(self, path: Path, address: str = "") -> Browser:
        """Show a file, at an address within it; what was logged and asked for before is forgotten."""
        self.post("url", url="about:blank")
        self.logged()
        self.requests()
        self.post("url", url=f"{path.as_uri()}#{address}")
        return self

    def js(self, script: str) -> Any:
        return self.post("execute/sync", script=script, args=[])

    def protocol(self, command: str, **parameters: Any) -> None:
        """Give a command of Chromium's own protocol."""
        self.post("goog/cdp/execute", cmd=command, params=parameters)

    def one(self, selector: str) -> Element:
        return Element(self, self.post("element", using="css selector", value=selector))

    def all(self, selector: str) -> list[Element]:
        return [Element(self, found) for found in self.post("elements", using="css selector", value=selector)]

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def shown(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector) if element.is_displayed]

    def press(self, *keys: str) -> None:
        for key in keys:
            Element(self, self.get("element/active")).type(key)
            self.settle()

    def click(self, what: str | Element) -> None:
        (self.one(what) if isinstance(what, str) else what).click()
        self.settle()

    def back(self) -> None:
        self.post("back")
        self.settle()

    def settle(self) -> None:
        """Wait for what the page does after it was touched: a new address is told of by an event, which comes later."""
        self.post("execute/async", script="requestAnimationFrame(() => setTimeout(arguments[0], 0))", args=[])

    def focused(self, script: str = "dataset.facts") -> Any:
        return self.js(f"return document.activeElement.{script}")

    def address(self) -> str:
        return str(self.js("return location.hash"))

    def logged(self) -> list[str]:
        """What the console was told since this was asked last."""
        return [entry["message"] for entry in self.post("se/log", type="browser")]

    def requests(self) -> set[str]:
        """What was asked for since this was asked last: the schemes, and the paths of files."""
        events = [json.loads(entry["message"])["message"] for entry in self.post("se/log", type="performance")]
        return {
            event["params"]["request"]["url"].partition("#")[0]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        }


def _value(response: httpx2.Response) -> Any:
    value = response.json()["value"]
    if response.is_error:
        raise Refused(f"{value['error']}: {value['message']}")
    return value


@contextmanager
def chromium(binary: str, driver: str, *arguments: str) -> Iterator[Browser]:
    """Chromium as long as it is looked at.

    Args:
        binary: the browser's program.
        driver: its driver's.
        arguments: of the browser.
    """
    with subprocess.Popen(  # noqa: S603  programs that were looked for by name
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        try:
            assert running.stdout is not None
            port = _port(running.stdout)
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=ANSWER_S, trust_env=False) as http:
                browser = Browser(http, _value(http.post("/session", json=_wanted(binary, arguments)))["sessionId"])
                try:
                    yield browser
                finally:
                    browser.quit()
        finally:
            running.terminate()


def _port(lines: Iterator[str]) -> int:
    said = []
    for line in lines:
        said.append(line)
        _, found, port = line.rstrip(".\n").partition(_STARTED)
        if found:
            return int(port)
    raise AssertionError(f"the driver of Chromium did not come up: {''.join(said)}")


def _wanted(binary: str, arguments: Sequence[str]) -> dict[str, Any]:
    chrome = {
        "browserName": "chrome",
        "goog:chromeOptions": {"binary": binary, "args": [*arguments]},
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    return {"capabilities": {"alwaysMatch": chrome}}
