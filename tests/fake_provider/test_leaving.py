"""How long an answer was on its way out is told with it: from then on the client may have had it."""

import asyncio

import pytest

from fake_provider.effects import Send
from fake_provider.engine import Passage
from fake_provider.facts import AnswerEnded
from fake_provider.wire import Answer, Request
from tests.fake_provider.conftest import BASE_URL, World


class Slow:
    """A shell that needs some time to bring an answer to its client."""

    def __init__(self, needs_s: float) -> None:
        self._needs_s = needs_s

    def begin(self, passage: Passage, answer: Answer) -> bool:
        return True

    def send(self, passage: Passage, send: Send) -> bool:
        if not self._needs_s:
            return True
        asyncio.get_running_loop().call_later(self._needs_s, passage.sent)
        return False

    def ended(self, passage: Passage) -> None:
        """Nobody waits."""


@pytest.mark.parametrize("needs_s", [0.0, 0.25])
def test_it_is_counted_from_when_the_answer_was_handed_over(needs_s: float) -> None:
    world = World()

    async def ask(world: World) -> None:
        request = Request(method="GET", path="/v1/jobs/x", query="", headers={}, body=b"", base_url=BASE_URL)
        world.engine.begin(request, "w1", Slow(needs_s))
        await world.clock.sleep(1)

    try:
        world.run(ask)
    finally:
        world.close()
    (ended,) = [fact for fact in world.facts if isinstance(fact, AnswerEnded)]
    assert ended.leaving_s == needs_s
