"""The OpenAPI document against the server: made-up requests, right and wrong, and every answer as it was promised."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from hypothesis import settings

from tests.interfaces.house import House
from tests.interfaces.live import live_house

# Long in `make torture`, which has more examples.
pytestmark = [pytest.mark.slow, pytest.mark.hypothesis, pytest.mark.timeout(1200)]

SECRET = "a secret of more than thirty-two bytes"
# A key that was used before with another body is refused; test_rest_headers.py has more of them.
HOOKS = """
import schemathesis

@schemathesis.hook
def before_load_schema(context, raw_schema):
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            operation["parameters"] = [
                parameter
                for parameter in operation.get("parameters", ())
                if parameter["name"] != "Idempotency-Key"
            ]
"""
CONFIG = """
hooks = "hooks.py"

[generation]
database = "none"

[checks]
# Ids are made up, and so are ETags: 404, 409 and 412 are no lies.
positive_data_acceptance.expected-statuses = [
    "2xx", "3xx", 401, 403, 404, 409, 412, 429, "5xx",
]

[[operations]]
include-path = "/api/v1/ingest"
# 422 also says that a well-formed address could not be read.
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]

[[operations]]
include-path = "/api/v1/crawls"
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 422]

[[operations]]
include-path = "/api/v1/search"
# A question of nothing but white space, of which Unicode has more kinds than a schema can name.
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]

[[operations]]
include-name = "GET /api/v1/items/{item_id}"
# How many sections it has.
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 404, 422]

[[operations]]
include-name = "GET /api/v1/disks/{disk_id}"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 404, 422]

[[operations]]
include-path = "/api/search"
# Nor can it name projects, or which words are states.
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]

[[operations]]
include-path = "/api/v1/events"
# A schema cannot tell which cursors there are.
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]

[[operations]]
include-path = "/api/v1/webhooks"
# Nor which addresses are private.
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]

[[operations]]
include-path = "/api/v1/feeds"
# Nor could a feed.
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 422]

[[operations]]
include-path = "/api/v1/disks/{disk_id}/save"
# One's own is there already.
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 422]

[[operations]]
include-path = "/api/v1/items/{item_id}/refresh"
# Texts and files have no address to be fetched from again.
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 422]

[[operations]]
include-path = "/api/explore"
# Every mode but `list` begins at an entity, and several states may be named at once.
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 422]

[[operations]]
include-path = "/api/entities"
# What depends on other things: that a task has a project, that ids are somebody's, that dates are days.
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]

[[operations]]
include-path = "/api/entities/{entity_id}"
# Blank texts, and days that no month has.
checks.positive_data_acceptance.expected-statuses = ["2xx", 304, 404, 409, 412, 422]

[[operations]]
include-path-regex = "/api/entities/.entity_id./(supersede|restore)"
# What was never corrected cannot be restored, and what replaces something is named in one of two ways.
checks.positive_data_acceptance.expected-statuses = ["2xx", 304, 404, 409, 412, 422]

[[operations]]
include-name = "POST /api/entities/{entity_id}/relations"
# Nothing is linked to itself, and some kinds lead to projects, epics or tasks only.
checks.positive_data_acceptance.expected-statuses = ["2xx", 404, 409, 422]

[[operations]]
include-path-regex = "/api/(tasks|epics).*"
# What the drawing allows, which ids are somebody's, and days that no month has.
checks.positive_data_acceptance.expected-statuses = ["2xx", 304, 404, 409, 412, 422]

[[operations]]
include-path-regex = "/api/v1/(members|invitations)(?!/accept).*"
# Who has an account sends no name; the last owner stays.
checks.positive_data_acceptance.expected-statuses = ["2xx", 403, 404, 409, 422]

[[operations]]
include-path-regex = "/api/v1/memory/.*"
# Ids are made up, so what they name is not there; queueing for review goes with persisting.
checks.positive_data_acceptance.expected-statuses = ["2xx", 304, 404, 409, 412, 422]

[[operations]]
include-path = "/api/v1/invitations/accept"
# Who has no account yet has no token either.
checks.missing_required_header.enabled = false
checks.positive_data_acceptance.expected-statuses = ["2xx", 403, 404, 409, 422]

[[operations]]
include-path-regex = "/api/v1/memory.*"
# Blank texts are refused in the words of the graph door, and ids are somebody's.
checks.positive_data_acceptance.expected-statuses = ["2xx", 304, 404, 409, 412, 422]

[[operations]]
include-path = "/api/v1/uploads/signed-url"
# The largest file is a setting.
checks.positive_data_acceptance.expected-statuses = ["2xx", 422]
"""


def token_for(house: House) -> str:
    """A JWT: a token of ours would be found in GET /tokens, and revoked."""
    return jwt.encode(
        {
            "sub": house.owner.person_id,
            "org": house.owner.library_id,
            "exp": int(time.time()) + 3600,
        },
        SECRET,
        algorithm="HS256",
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A live server with no limits: (address, a token of the owner)."""
    folder = tmp_path_factory.mktemp("served") / "data"
    with live_house(folder, jwt_secret=SECRET) as (address, house):
        yield address, token_for(house)


# Together they are all paths; apart, because one after the other they take longer than a test may.
PARTS = {
    "items": r"^/api/v1/(items|ingest|search|jobs|folders)",
    "entities": r"^/api/(entities|explore)",
    "tasks": r"^/api/tasks",
    "epics": r"^/api/epics",
    "memory": r"^/api/v1/(memory|disks)",
    "rest": r"^/(?!api/v1/(items|ingest|search|jobs|folders|memory|disks)|api/(entities|explore|tasks|epics))",
}


EXAMPLES = settings.default.max_examples // 12
# The edges of each field take nine tenths of the time.
PHASES = "examples,fuzzing,stateful" if EXAMPLES < 10 else "examples,coverage,fuzzing,stateful"


@pytest.mark.parametrize("paths", PARTS.values(), ids=PARTS)
def test_every_answer_is_as_promised(served: tuple[str, str], tmp_path: Path, paths: str) -> None:
    """Examples, fuzzing and chains of calls; in `make torture` the edges of each field too."""
    address, token = served
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    (tmp_path / "hooks.py").write_text(HOOKS)
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "--config-file",
            config,
            "run",
            f"{address}/openapi.json",
            "--header",
            f"Authorization: Bearer {token}",
            "--max-examples",
            str(EXAMPLES),
            "--phases",
            PHASES,
            "--seed",
            "1",
            "--include-path-regex",
            paths,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    selected, tested = re.findall(r"Selected: (\d+)/\d+\s+Tested: (\d+)", run.stdout)[0]
    assert int(tested) == int(selected) > 0
