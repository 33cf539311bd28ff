"""What the stages have in common whose workers are programs: the provider on real sockets, a port of it for each
worker, a directory for what they keep, their logs, and what cannot be done with a program.

How the programs are run is in ``process`` (one for each worker, with a protocol) and ``one_shot`` (one for each
operation).
"""

import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fake_provider.engine import Engine
from fake_provider.server import Server
from harness.history import SecretSaid
from harness.stage import Notebook, SubjectBroken, SubjectError, Terms
from harness.subjects.groups import Log
from harness.subjects.reaper import the_reaper

__all__ = ["ProgramStage"]


class ProgramStage:
    """The part of a :class:`harness.stage.Stage` that does not depend on how programs are run.

    ``logs`` holds what each program wrote to its standard error.

    Args:
        command: the program and its arguments.
    """

    def __init__(self, command: Sequence[str], *, terms: Terms, notebook: Notebook) -> None:
        self.logs: dict[str, Log] = {}
        self._command = tuple(command)
        self._terms = terms
        self._notebook = notebook
        self._record = notebook.record
        self._server: Server | None = None
        self._urls: dict[str, str] = {}  # of the provider, by worker
        self._broken: str | None = None
        self._home = Path(tempfile.mkdtemp(prefix="jobsworth-"))
        the_reaper().watch("dir", self._home)

    def attach(self, engine: Engine) -> None:
        """Put the engine on real sockets."""
        self._server = Server(engine)

    def set_clock(self, worker: str, ahead_s: float) -> None:
        """Refuse: a process has the clock of its machine, which is everybody's."""
        raise SubjectError(f"{worker} is a process: its clock, the machine's, cannot be set {ahead_s:g} s ahead")

    async def settle(self) -> None:
        """In real time nobody can tell; but a run that proves nothing any more ends here."""
        self._raise_if_broken()

    async def _url_for(self, worker: str) -> str:
        """Return the provider's address for a worker: a port of its own, so that the history knows who called."""
        if worker not in self._urls:
            assert self._server is not None
            self._urls[worker] = await self._server.open_port(worker)
        return self._urls[worker]

    def _new_log(self, name: str, worker: str) -> Log:
        """Begin the log of one program. A secret in it is taken out and told of."""
        log = self.logs[name] = Log(self._terms.secrets, partial(self._tell_of_secret, worker))
        return log

    def _tell_of_secret(self, worker: str) -> None:
        self._record(SecretSaid(worker=worker, where="log"))

    def _break(self, why: str) -> None:
        """End the run at the next opportunity; the first reason is the one that is given."""
        self._broken = self._broken or why

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise SubjectBroken(self._broken)

    async def _give_back(self) -> None:
        """Close the sockets, and remove what the programs kept."""
        if self._server is not None:
            await self._server.close()
        self._tidy()

    def _tidy(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)
        the_reaper().release("dir", self._home)
