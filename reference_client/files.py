"""Large results as files: written whole, made durable, then given their name, which is their digest (W7.3)."""

import os
from pathlib import Path

from reference_client.stores.protocol import StoreRefused

__all__ = ["ResultFiles"]


class ResultFiles:
    """A directory of results, each named for its SHA-256: the same bytes twice are one file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, body: bytes, *, sha256: str) -> Path:
        """Write ``body`` durably and return where it lies.

        Raises:
            StoreRefused: if the file cannot be written. No file of that name is left behind half-written.
        """
        path = self._directory / f"{sha256}.result"
        partial = path.with_suffix(f".{os.getpid()}.partial")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            directory = os.open(self._directory, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise StoreRefused(f"{path}: {error.strerror}") from error
        return path
