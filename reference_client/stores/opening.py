"""Which store an address means: a path or ``sqlite:///path``, or ``postgresql://…``."""

from difflib import get_close_matches
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from reference_client.config import ConfigError
from reference_client.stores.protocol import OperationStore
from reference_client.stores.sqlite import SQLiteStore

__all__ = ["open_store"]

_SQLITE: Final = "sqlite"
_POSTGRES: Final = ("postgresql", "postgres")


def open_store(place: str) -> OperationStore:
    """Open the store at ``place``.

    Args:
        place: the path of an SQLite file, plain or as ``sqlite:///relative`` and ``sqlite:////absolute``; or a
            PostgreSQL address, ``postgresql://user@host/database``, without the password.

    Raises:
        ConfigError: if ``place`` cannot be the address of a store, or the driver that it needs is not installed.
        StoreError: if the store cannot be opened. PostgreSQL is connected to at the first use.
    """
    scheme, separator, rest = place.partition("://")
    if not separator:
        if not place:
            raise ConfigError("store: is empty; write the path of an SQLite file, or postgresql://…")
        return SQLiteStore(Path(place))
    if scheme == _SQLITE:
        host, _, path = rest.partition("/")
        if host or not path:
            raise ConfigError(
                f"store: {place!r} is no address of a file; write sqlite:///relative/path or sqlite:////absolute/path"
            )
        return SQLiteStore(Path(unquote(path)))
    if scheme in _POSTGRES:
        try:
            from reference_client.stores.postgres import PostgresStore
        except ImportError as error:
            raise ConfigError(
                f"store: PostgreSQL needs psycopg 3, which cannot be imported ({error}); "
                "install jobsworth with its extra: jobsworth[postgres]"
            ) from None
        return PostgresStore(place)
    near = get_close_matches(scheme, [_SQLITE, *_POSTGRES], n=1)
    hint = f"; did you mean {near[0]}://?" if near else ""
    raise ConfigError(f"store: there is no store for {scheme}://, only for a path, sqlite:/// and postgresql://{hint}")
