"""The first read of the result is to see if it works, the second to keep it."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.steps import Draft
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("one-time-result")
CAUGHT_BY = "one-time-result-read-once"
ALSO_CAUGHT_BY = ("finished-result-not-lost",)


class Broken(Workflow):
    def conclude_result(self, draft: Draft, answer: Answer | NoAnswer) -> None:
        if draft.operation.result_reads == 0:
            draft.set(result_reads=1)
            self._not_retrieved(draft, answer, "probe", "it is there")
        else:
            super().conclude_result(draft, answer)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
