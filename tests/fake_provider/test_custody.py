"""Where in a request a secret stands is told; what it is, is not."""

import pytest

from fake_provider.custody import Custody
from fake_provider.wire import Request

KEY = "sk-canary-0123456789abcdef"


def asked(
    *, path: str = "/v1/jobs", query: str = "", body: bytes = b"", authorization: str = f"Bearer {KEY}", **headers: str
) -> Request:
    return Request(
        method="GET",
        path=path,
        query=query,
        headers={"authorization": authorization, **headers},
        body=body,
        base_url="http://provider.test",
    )


@pytest.mark.parametrize(
    ("request_", "places"),
    [
        (asked(), ()),
        (asked(query=f"access_token={KEY}"), ("query",)),
        (asked(query="access_token=sk%2Dcanary%2D0123456789abcdef"), ("query",)),
        (asked(path=f"/v1/{KEY}/jobs"), ("path",)),
        (asked(body=b'{"callback": "Bearer ' + KEY.encode() + b'"}'), ("body",)),
        (asked(baggage=f"key={KEY}", accept="text/plain"), ("header baggage",)),
        (asked(query=f"a={KEY}&b={KEY}", body=KEY.encode()), ("query", "body")),
    ],
)
def test_the_places_are_named(request_: Request, places: tuple[str, ...]) -> None:
    """Whether the secret is known beforehand, or only stands in the request's own header."""
    assert Custody([f"Bearer {KEY}"]).exposed(request_) == places
    assert Custody([]).exposed(request_) == places


def test_a_secret_that_was_given_is_found_where_no_header_bears_it() -> None:
    bare = asked(query=f"key={KEY}", authorization="")
    assert Custody([f"Bearer {KEY}"]).exposed(bare) == ("query",)
    assert Custody([]).exposed(bare) == ()


def test_a_webhook_secret_is_one_too() -> None:
    assert Custody(["whsec_MfKQ9r8GKYqrTwjU"]).exposed(asked(body=b"whsec_MfKQ9r8GKYqrTwjU")) == ("body",)


@pytest.mark.parametrize("placeholder", ["", "Bearer test", "Bearer jobsworth"])
def test_a_placeholder_is_no_secret(placeholder: str) -> None:
    """What stands for a credential in somebody's test-suite may be a word like any other."""
    assert Custody([]).exposed(asked(authorization=placeholder, body=b"a test of jobsworth")) == ()


def test_a_path_is_told_without_the_secret() -> None:
    assert Custody([f"Bearer {KEY}"]).path(asked(path=f"/v1/{KEY}/jobs")) == "/v1/[redacted]/jobs"
    assert Custody([]).path(asked(path="/v1/sk%2Dcanary%2D0123456789abcdef/jobs")) == "/v1/[redacted]/jobs"
    assert Custody([]).path(asked(path="/v1/a%20job")) == "/v1/a%20job"
