"""A stop command that comes before the job is known is forgotten."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Stop
from reference_client.steps import Draft
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("stop-asked-for-early")
CAUGHT_BY = "stop-command-acted-upon"


class Broken(Workflow):
    @staticmethod
    def _take_stop(draft: Draft, command: Stop) -> None:
        if draft.operation.remote_job_id is None:
            draft.note(cause=f"stop command of {command.who}", reason="there is no job to cancel")
        else:
            Workflow._take_stop(draft, command)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
