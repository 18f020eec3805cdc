"""Masking, measured on a set of its own: how much of what must go goes, and how little of the rest."""

import re
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


# -- Where each rule begins and ends


@pytest.mark.parametrize(
    "text, shown",
    [
        ("Card 4222222222222.", "Card [card]."),  # 13 digits, the fewest
        ("Card 4000000000000000006.", "Card [card]."),  # 19, the most
        ("Card 4111 1111 1111 1112.", None),
        ("Card 4111 1111 1111 1115.", None),  # one digit off
        ("Card 6666666666666.", None),  # passes the check, and is nobody's
        ("Amex 3782 822463 10005.", "Amex [card]."),
        ("Amex 3782 822463 10006.", None),
        ("Diners 3056 930902 5904.", "Diners [card]."),
        ("Diners 3056 930902 5905.", None),
        ("IBAN NO93 8601 1117 947.", "IBAN [iban]."),
        ("IBAN NO93 8601 1117 948.", None),
        ("IBAN MT84 MALT 0110 0001 2345 MTLC AST0 01S.", "IBAN [iban]."),
        ("Call +49 12345.", "Call [phone]."),
        ("Call +49 1234.", None),
        ("Call +123456789012345.", "Call [phone]."),
        ("Call +1234567890123456.", None),
        ("Since 01-02-2024 10:30.", None),
        ("Since 01/02/24.", None),
        ("See 123-45-6789.", "See [secret]."),
        ("See 1123-45-6789.", None),
        ("See 123-45-67890.", None),
        ("At https://ann:pw@host.example/x", "At https://[secret]@host.example/x"),
    ],
)
def test_numbers_are_masked_by_their_length_and_check_digits(text: str, shown: str | None) -> None:
    assert mask_secrets(text) == (shown or text)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a1b2c3d4e5f6g7h", "[key]"),
        ("abc12de34ghijk56", "[key]"),  # letters and digits change five times
        ("abc12def34ghijkl", None),
        ("abc12defghijklmn34", None),  # too short; too few changes
        ("Ab1cDe2fGh3iJk", None),  # too short
        ("abcdefgh12ijklmnopqr", None),
        ("ABCDEFGH12IJKLMNOPQR", None),  # only when capitals are mixed in
        ("dead1beefd2eadb3eefdeadbe", None),  # a digest
        ("dead1beef-dead-beef-dead-b2234567890a", None),
        ("dead1beefdeadbeefdeadbee", None),
        ("deadbeefdeadbeef12345678", None),
        ("the-top-10-tips-for-2024-and-2025", None),
        ("ghp_aB3dEfGhIjKlMnOpQrStUvWxYz0123456789", "[key]"),
        ("ghp_abcdefghijklmnop", None),
        ("eyJhbGciOiJI.abcdefgh", "[key]"),
        ("eyJhbGciOiJI.abcdefg", None),
        ("eyJhbGciOiJI/abcdefgh", None),
        ("eyJhbGciOiJI.abcdefgh/sig", "[key]/sig"),
    ],
)
def test_keys_are_told_from_names(text: str, shown: str | None) -> None:
    assert mask_secrets(f"Take {text} now.") == f"Take {shown or text} now."


@pytest.mark.parametrize(
    "text, shown",
    [
        ("x" * 64 + "@example.org", "[email]"),
        ("x" * 65 + "@example.org", None),
        ("a@b.example, then d@e.example", "[email], then [email]"),
        ("a@b.example@c.example", "[email]@c.example"),
        ("@example.org", None),
        ("a.@example.org", None),
        ("ann@example", None),
    ],
)
def test_addresses_of_mail_have_two_sides(text: str, shown: str | None) -> None:
    assert mask_secrets(text) == (shown or text)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("password: abcd", "[secret]"),
        ("password: abc", None),
        ("password abc123", "[secret]"),
        ("password abc12", None),
        ("password 123456", None),
        ("password abcdef", None),
        ("PASSWORD=abcd", "[secret]"),
        ("compass: north", None),
        ("password is required", None),
        ("secret was shared here", None),
        ("token => 'abcd', x", "[secret]', x"),
        ('password: "b4dly horse, battery" x', '[secret]" x'),
        ("<password>hunter22b</password>", "<[secret]"),
        ("curl -u ann:hunter2 https://x.example", "curl -u [secret] https://x.example"),
        ("docker run -u ann:users image", None),
        ("SECRET_KEY_BASE=ab12cd34ef", "[secret]"),
        ("tokenizer: gpt2-medium", None),
        ("DB_PASSWORD=swordfish for owls", "DB_[secret] for owls"),
        ("password: words about it", None),
        ("clearTextPassword=x9y8z7w6", "clearText[secret]"),
        ("compass: n0rth", None),
    ],
)
def test_what_follows_a_name_is_secret_when_it_can_be_one(text: str, shown: str | None) -> None:
    assert mask_secrets(text) == (shown or text)


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
        "test",
        "my-token",
        "secret_key_123",
        "deadbeefcafe",
        "blahblahblah",
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
        "letmein",
        "<hunter2>",
        "admin",
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
