from __future__ import annotations

import pytest

from toolkeel_cli.hidden import HIDDEN, shown


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("hunter2", ("plugins", "x", "api_key")),
        ("hunter2", ("plugins", "x", "token")),
        ("hunter2", ("plugins", "x", "headers", "X-Anything")),
        ("hunter2", ("plugins", "x", "credentials", "user")),
        ("Bearer abcdefgh12345678", ("plugins", "x", "n")),
        ("sk-ant-api03-abcdefghijklmnop", ("plugins", "x", "n")),
        ("ghp_abcdefghijklmnopqrstuvwxyz012345", ("n",)),
        ("AKIAABCDEFGHIJKLMNOP", ("n",)),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", ("n",)),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", ("n",)),
    ],
)
def test_a_secret_is_hidden_by_its_name_or_its_shape(value: str, names: tuple[str, ...]) -> None:
    assert shown(value, names) == HIDDEN
    assert value not in str(shown({"deeper": [value]}, names))


def test_the_user_and_password_of_an_address_are_hidden_and_the_address_is_not() -> None:
    assert shown("postgresql://ann:hunter2@db.example/app") == f"postgresql://{HIDDEN}@db.example/app"
    assert shown(["https://key@host/x"]) == [f"https://{HIDDEN}@host/x"]


@pytest.mark.parametrize("value", ["https://host/a@b", "skill", "sketch-book", 5, None, "", True, "a: b"])
def test_what_is_no_secret_stays_readable(value: object) -> None:
    assert shown(value, ("plugins", "x", "folder")) == value
