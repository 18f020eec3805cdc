"""Masking, measured on a set of its own: how much of what must go goes, and how little of the rest."""

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from commonplace.text.secret_masking import mask_secrets
from tests.core.masking_set import HIDDEN, KEPT, LATER_HIDDEN, LATER_KEPT

_MARKED = re.compile("‹([^›]*)›")
POSITIVE = [(kind, line) for kind, lines in HIDDEN.items() for line in lines.strip().splitlines()]
ALL_POSITIVE, ALL_NEGATIVE = [*(line for _, line in POSITIVE), *LATER_HIDDEN], [*KEPT, *LATER_KEPT]
LEAST_RECALL, LEAST_PRECISION = 0.97, 0.97


def _hides(line: str) -> bool:
    secret = _MARKED.findall(line)[0]
    return secret not in mask_secrets(_MARKED.sub(r"\1", line))


def test_the_set_is_large_enough() -> None:
    assert len(ALL_POSITIVE) >= 148 and len(ALL_NEGATIVE) >= 130


def test_recall_and_precision() -> None:
    missed = [line for line in ALL_POSITIVE if not _hides(line)]
    wrong = [(line, mask_secrets(line)) for line in ALL_NEGATIVE if mask_secrets(line) != line]
    found = len(ALL_POSITIVE) - len(missed)
    recall, precision = found / len(ALL_POSITIVE), found / (found + len(wrong))
    assert recall >= LEAST_RECALL, (recall, missed)
    assert precision >= LEAST_PRECISION, (precision, wrong)


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_is_hidden_is_named(kind: str) -> None:
    named = [mask_secrets(_MARKED.sub(r"\1", line)) for k, line in POSITIVE if k == kind]
    assert sum(f"[{kind}]" in text for text in named) >= 0.9 * len(named), named


def test_the_rest_of_the_sentence_stays() -> None:
    assert (
        mask_secrets("Write to ann@example.org or call +1 415 555 0132 today.")
        == "Write to [email] or call [phone] today."
    )


@given(st.text(max_size=300))
def test_masking_takes_any_text_and_is_done_at_once(text: str) -> None:
    once = mask_secrets(text)
    assert isinstance(once, str)
    assert len(once) <= 4 * len(text) + 20


@pytest.mark.parametrize(
    "text",
    [
        "0" * 20_000,
        "a1" * 10_000,
        "a@" * 10_000,
        "+1 " * 7_000,
        "password " * 3_000,
        "DE89 " * 4_000,
        "a-" * 10_000,
        "(0" * 8_000,
        "token 1" * 3_000,
    ],
)
def test_hostile_texts_take_no_longer_than_others(text: str) -> None:
    start = time.process_time()
    mask_secrets(text)
    assert time.process_time() - start < 1.0


# -- Private keys: made up for this test, in the shape of real ones

_BODY = [
    "MIIEowIBAAKCAQEA7bq/Zx81kQ0vB7m2Lp9sT4wJalrXUtnFEMI4K7MDENG2bPxR",
    "iCYzEXuMPLcKEYq8x14bn6t0v57f3k92mzAAAAB3NzaC1yc2EuAAADAQABAAABgQ",
    "C7vbqajDhAdozjgNryP4J3jVmNHl0w5NXgL0n3I9PlFUP0THsR8U+dQw4w9WgXcQ",
    "aGVsbG8gd29ybGQ=",
]
_KINDS = [
    "PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "DSA PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "PGP PRIVATE KEY BLOCK",
    "ANY PRIVATE KEY",
]
_HEADERS = {
    "RSA PRIVATE KEY": "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n",
    "PGP PRIVATE KEY BLOCK": "Version: GnuPG v2\nComment: made up\n\n",
}


def _key(kind: str) -> str:
    return (
        f"-----BEGIN {kind}-----\n{_HEADERS.get(kind, '')}"
        + "\n".join(_BODY)
        + f"\n-----END {kind}-----"
    )


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize(
    "written",
    [
        str,
        lambda key: key.replace("\n", "\r\n"),
        lambda key: key.replace("\n", "\\n"),
        lambda key: " ".join(key.split("\n")),
        lambda key: "\n".join(f"    {line}" for line in key.split("\n")),
        lambda key: "\n".join(f"> {line}" for line in key.split("\n")),
    ],
    ids=["as it is", "crlf", "in a string", "on one line", "indented", "quoted"],
)
def test_private_keys_are_masked_whole(kind: str, written: Callable[[str], str]) -> None:
    text = mask_secrets(f"Use this key:\n\n{written(_key(kind))}\n\nand keep it safe.")
    assert not any(line[:12] in text or line[-12:] in text for line in _BODY)
    assert (
        text.startswith("Use this key:") and text.endswith("and keep it safe.") and "[key]" in text
    )


@pytest.mark.parametrize("kind", _KINDS)
def test_keys_that_are_cut_off_are_masked_too(kind: str) -> None:
    whole = _key(kind)
    begin = len(f"-----BEGIN {kind}-----")
    for length in range(begin, len(whole)):
        text = mask_secrets(whole[:length])
        shown = [
            line for line in _BODY if any(line[at : at + 6] in text for at in range(len(line) - 5))
        ]
        assert not shown, (length, text)


def test_a_text_goes_on_after_a_key_that_is_cut_off() -> None:
    text = mask_secrets(
        f"-----BEGIN EC PRIVATE KEY-----\n{_BODY[0]}\n{_BODY[1][:20]}\n\nThat was the key, and this is the rest of the story."
    )
    assert text == "[key]\n\nThat was the key, and this is the rest of the story."


def test_each_of_several_keys_is_masked_and_the_text_between_stays() -> None:
    assert (
        mask_secrets(
            f"{_key('PRIVATE KEY')}\nand also\n{_key('EC PRIVATE KEY')}\nor\n{_key('PGP PRIVATE KEY BLOCK')[:200]}"
        )
        == "[key]\nand also\n[key]\nor\n[key]"
    )


def test_public_keys_and_certificates_are_no_secrets() -> None:
    text = "-----BEGIN PUBLIC KEY-----\nshort\n-----END PUBLIC KEY-----\n-----BEGIN CERTIFICATE-----\nshort\n-----END CERTIFICATE-----"
    assert mask_secrets(text) == text


# -- Placeholders


@pytest.mark.parametrize(
    "value",
    [
        "YOUR_API_KEY",
        "your-api-key-here",
        "<your-token>",
        "<token>",
        "<PASSWORD>",
        "xxxxxxxxxxxxxxxx",
        "XXXX-XXXX-XXXX",
        "********",
        "sk_...",
        "sk-your-key-here",
        "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "changeme",
        "change-me",
        "${API_TOKEN}",
        "$API_TOKEN",
        "{{secrets.TOKEN}}",
        "%PASSWORD%",
        "example",
        "example-token",
        "my_example_key",
        "placeholder",
        "REPLACE_WITH_YOUR_TOKEN",
        "process.env.TOKEN",
        "insert-your-token-here",
        "none",
        "redacted",
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "password: {}",
        "API_KEY={}",
        'token = "{}"',
        "The secret is {} in this example.",
        "export KEY={}",
    ],
)
def test_placeholders_stay(form: str, value: str) -> None:
    assert mask_secrets(form.format(value)) == form.format(value)


@pytest.mark.parametrize(
    "value",
    [
        "hunter2",
        "changeme2024",
        "your-dog-ate-7831",
        "example99",
        "$ecret99",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
        "xxxx1234abcd",
        "keyboardcat",
        "P@ssw0rd",
        "mypassword",
        "letmein",
        "<hunter2>",
        "admin",
        "test",
        "my-password",
        "00000000",
        "$%&/()=!",
        "aaaaaaaa",
    ],
)
def test_what_only_begins_like_a_placeholder_is_masked(value: str) -> None:
    assert value not in mask_secrets(f"password: {value}")


@pytest.mark.parametrize(
    "text, shown",
    [
        (
            "Bearer-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN",
            "Bearer-[key]",
        ),
        (
            "see a.b.eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN now",
            "see a.b.[key] now",
        ),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.", "[key]."),
        (
            "x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.sig/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.sig",
            "x=[key]/[key]",
        ),
    ],
)
def test_signed_tokens_are_found_anywhere(text: str, shown: str) -> None:
    assert mask_secrets(text) == shown


@pytest.mark.parametrize(
    "text, shown",
    [
        ("token password abc123", "token [secret]"),
        ("credentials:\n  password: hunter2", "credentials:\n  [secret]"),
        ("auth:\n  token: abcd1234\n  user: ann", "auth:\n  [secret]\n  user: ann"),
        ("Token: password: hunter2", "Token: [secret]"),
    ],
)
def test_a_name_before_another_name_does_not_hide_the_secret(text: str, shown: str) -> None:
    assert mask_secrets(text) == shown
