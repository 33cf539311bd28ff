"""What a dialect is: how one provider writes its contract on the wire. The one seam between wire and core."""

from typing import Any, Protocol

from fake_provider.calls import Call, JobView, Reply
from fake_provider.contract import Contract
from fake_provider.facts import Endpoint
from fake_provider.results import Style
from fake_provider.wire import Answer, Request

__all__ = ["Dialect"]


class Dialect(Style, Protocol):
    """Pure functions from wire request to call and from reply to wire answer. Holds no state of a run."""

    name: str
    summary: str  # one line, for the catalogue
    endpoints: frozenset[Endpoint]  # what its requests can be for
    likeness: Contract  # what a provider that speaks it promises, where nobody says otherwise

    def cannot_promise(self, contract: Contract) -> str | None:
        """Return what in a contract this wire format has no words for, as a reason; None if it can write it all."""
        ...

    def words(self, contract: Contract) -> frozenset[str]:
        """Return every word by which the state of a job is told."""
        ...

    def read(self, request: Request, contract: Contract) -> Call:
        """Understand a request. What cannot be understood comes back as a call with a refusal; nothing is raised."""
        ...

    def write(
        self, reply: Reply, *, call: Call, request: Request, contract: Contract, now: float, request_id: str
    ) -> Answer:
        """Write an answer."""
        ...

    def trouble(self, status: int, detail: str) -> Answer:
        """Write an error answer that no call led to, as a gateway or an overloaded server would."""
        ...

    def openapi(self, contract: Contract, base_url: str) -> dict[str, Any]:
        """Describe the provider of such a contract as an OpenAPI document."""
        ...

    def event(
        self, view: JobView, *, event: str, kind: str | None, contract: Contract, now: float, base_url: str
    ) -> tuple[str, bytes]:
        """Write a webhook about a job: its type and its body.

        Args:
            event: the event's own id.
            kind: a type other than the one the job's state has.
        """
        ...
