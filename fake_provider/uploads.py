"""Documents that clients upload before they create jobs that work through them. Pure."""

from typing import TYPE_CHECKING, Final

from fake_provider.calls import Problem, ReadUpload, Refused, Reply, Upload, Uploaded, UploadedFile

if TYPE_CHECKING:  # handed in, never made here
    from random import Random

__all__ = ["MAX_UPLOADED_BYTES", "Uploads"]

MAX_UPLOADED_BYTES: Final = 64 << 20
"""All documents of one provider together: they stay in memory, and a fake must not fill up by accident."""


class Uploads:
    """All uploaded documents, by id."""

    def __init__(self, *, prefix: str, random: "Random") -> None:
        self._prefix = prefix
        self._random = random
        self._files: dict[str, UploadedFile] = {}
        self._bytes = 0

    def get(self, upload: str) -> UploadedFile | None:
        """Return the document of that id, or None."""
        return self._files.get(upload)

    def keep(self, call: Upload, now: float) -> Reply:
        """Take a document into keeping."""
        self._bytes += len(call.content)
        if self._bytes > MAX_UPLOADED_BYTES:
            self._bytes -= len(call.content)
            detail = f"this provider keeps at most {MAX_UPLOADED_BYTES} bytes of uploaded documents"
            return Refused(problem=Problem.TOO_LARGE, detail=detail)
        kept = UploadedFile(
            id=f"{self._prefix}{self._random.getrandbits(64):016x}",
            name=call.name,
            purpose=call.purpose,
            content=call.content,
            created_at=now,
            items=call.items,
            complaint=call.complaint,
        )
        self._files[kept.id] = kept
        return Uploaded(file=kept)

    def read(self, call: ReadUpload) -> Reply:
        """Tell of a document."""
        kept = self._files.get(call.upload)
        if kept is None:
            return Refused(problem=Problem.NOT_FOUND, detail=f"there is no document {call.upload}")
        return Uploaded(file=kept, content=call.content)

    def fingerprint(self) -> object:
        """Return what the provider will go by, in types of JSON; without ids, which are random."""
        return [(kept.name, kept.purpose, kept.created_at, kept.items) for kept in self._files.values()]
