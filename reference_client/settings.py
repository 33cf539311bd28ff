"""The settings file of the command line: JSON, read and checked whole before anything starts.

It holds references to credentials ("env:JOBS_AUTHORIZATION"), never a value.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from reference_client.collection import Collecting
from reference_client.config import ConfigError, Terms, Timing
from reference_client.credentials import CredentialError, credential_from
from reference_client.schema import ResultSchema

__all__ = ["Settings", "WebhookSettings"]


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to listen, and references to the secrets: two while they are being rotated."""

    secrets: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 8080

    def __post_init__(self) -> None:
        if not 1 <= len(self.secrets) <= 2:
            raise ValueError(f"secrets: one, or two while rotating; found {len(self.secrets)}")
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port: {self.port} is not in 0 … 65535")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client needs to know of its provider and its machine.

    ``store`` is the path of an SQLite file (or ``sqlite:///path``), or a PostgreSQL address: ``postgresql://host/database``,
    without a password, which libpq finds in PGPASSFILE, PGSERVICEFILE or PGPASSWORD.
    """

    base_url: str
    credential: str
    adapter: str = "jobs"
    store: str = "operations.sqlite"
    results: str | None = None
    results_over_bytes: int = Collecting.inline_limit_bytes
    result_schema: dict[str, Any] | None = None
    contract: dict[str, Any] = {}
    timing: Timing = Timing()
    webhooks: WebhookSettings | None = None

    @classmethod
    def load(cls, path: Path) -> "Settings":
        """Read a settings file.

        Raises:
            ConfigError: with the file, the field and what is wrong with it.
        """
        try:
            settings = msgspec.json.decode(path.read_bytes(), type=cls)
            settings.check()
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        except (msgspec.DecodeError, ConfigError, CredentialError) as error:
            raise ConfigError(f"{path}: {error}") from None
        return settings

    def check(self) -> None:
        """Return if the parts make sense. Raises: ConfigError, CredentialError."""
        parts = urlsplit(self.base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
            raise ConfigError("base_url: write https://host or https://host/path, without credentials in it")
        credential_from(self.credential)
        for secret in self.webhooks.secrets if self.webhooks is not None else ():
            credential_from(secret)
        self.terms()
        if self.results_over_bytes < 0:
            raise ConfigError(f"results_over_bytes: {self.results_over_bytes} is below 0")
        if self.result_schema is not None:
            ResultSchema(self.result_schema)

    def terms(self) -> Terms:
        """Return the provider's promises."""
        return Terms.read(self.contract)
