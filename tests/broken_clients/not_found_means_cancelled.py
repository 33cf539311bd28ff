"""A job that is not there to be cancelled is taken for a cancelled one."""

from harness.subject import Client, Host
from tests.broken_clients.finished_means_cancelled import Broken as MisreadsTheCancel

SCENARIO = "cancel-of-a-finished-job-answered-404"
CAUGHT_BY = "cancelled-only-if-confirmed"


class Broken(MisreadsTheCancel):
    taken_for_cancelled = 404


def build(host: Host) -> Client:
    return Broken(host)
