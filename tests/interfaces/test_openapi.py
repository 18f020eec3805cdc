"""The OpenAPI document: valid, in one name per thing, true, and fit for generators of clients."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.registry import ACTIONS, ROOMS
from commonplace.interfaces.actions.shapes import Shape
from commonplace.interfaces.rest.openapi import openapi
from commonplace.model import Json
from tests.interfaces.conformance import node
from tests.interfaces.house import ADDRESS, House
from tests.interfaces.live import live_house
from tests.own_environment import own_environment

CLIENTS = Path(__file__).parent / "clients"
ROUTED = {name: action for name, action in ACTIONS.items() if action.route}
PROBES = {"/healthz", "/readyz", "/metrics"}


def operation_of(action: Action) -> Json:
    operation: Json = openapi()["paths"][action.path][action.method.lower()]
    return operation


def operations() -> Iterator[tuple[str, Json]]:
    for path, methods in openapi()["paths"].items():
        for operation in methods.values():
            yield path, operation


# -- the document


def test_it_is_valid() -> None:
    errors = [error.message for error in OpenAPIV31SpecValidator(openapi()).iter_errors()]
    assert errors == []
    assert openapi()["openapi"].startswith("3.1")


@pytest.mark.anyio
async def test_it_names_the_server_that_was_asked(house: House) -> None:
    async with house.client() as client:
        document = (await client.get("/openapi.json")).json()
    assert document["servers"] == [{"url": ADDRESS}]
    assert document | {"servers": None} == openapi() | {"servers": None}


def test_every_route_is_there_by_the_name_of_its_action() -> None:
    named = {action.name: operation_of(action)["operationId"] for action in ROUTED.values()}
    assert named == {name: name for name in ROUTED}
    paths = {path for path, _ in operations()}
    assert paths == {action.path for action in ROUTED.values()} | PROBES
    ids = Counter(operation["operationId"] for _, operation in operations())
    assert max(ids.values()) == 1
    assert sum(ids.values()) == len(ROUTED) + len(PROBES)


def test_tags_have_descriptions_and_operations_summaries() -> None:
    described = {tag["name"]: tag["description"] for tag in openapi()["tags"]}
    assert described.keys() == {*ROOMS, "probes"} and all(described.values())
    for path, operation in operations():
        assert len(operation["tags"]) == 1 and operation["tags"][0] in described, path
        assert operation["summary"] and not operation["summary"].endswith("."), path


def shapes_of(shape: Shape) -> Iterator[Shape]:
    yield shape
    for part in shape.parts:
        yield from shapes_of(part)


def test_a_schema_has_its_name_for_itself() -> None:
    """Two shapes, or bodies of the same input, would be one schema to a generator."""
    shapes, bodies = defaultdict[str, list[Json]](list), defaultdict[str, list[set[str]]](list)
    for action in ROUTED.values():
        for shape in shapes_of(action.output):
            shapes[shape.name].append(shape.schema)
        if action.method in ("POST", "PATCH"):
            outside = {*action.path_fields, *action.query}
            bodies[f"{action.input.__name__}Body"].append(
                action.input.model_fields.keys() - outside
            )
    for name, found in [*shapes.items(), *bodies.items()]:
        assert all(each == found[0] for each in found), name
    assert not shapes.keys() & bodies.keys()
    names = Counter(name.lower() for name in openapi()["components"]["schemas"])
    assert max(names.values()) == 1  # files of clients are named after them


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    text = json.dumps(openapi())
    named = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', text))
    assert named == openapi()["components"]["schemas"].keys()
    assert text.count("$ref") == len(re.findall(r'"\$ref": "#/components/schemas/', text))


# -- what can happen

BODY, ALWAYS = {"400", "413", "415"}, {"401", "422", "429", "503"}
QUOTA = {
    *("add_to_knowledge", "finalize_recording", "finalize_document", "retry_item", "update_item"),
    *(
        "refresh_item",
        "restore_version",
        "create_upload",
        "add_entity",
        "update_entity",
        "add_task",
    ),
    *("add_note", "add_epic", "remember", "reflect", "accept_candidate"),
}
# What is named in a body or query, and may not be there.
NAMED = {
    *("finalize_recording", "finalize_document", "follow_feed", "create_token", "explore"),
    *("list_items", "create_crawl"),
}
FOR_ALL_BUT_SCOPED = {"list_members"}
# Conflicts with the state of something, not with a revision.
CONFLICTS = {
    *("update_folder", "change_role", "remove_member"),
    *("update_candidate", "accept_candidate", "reject_candidate"),
}


@pytest.mark.parametrize("action", ROUTED.values(), ids=ROUTED)
def test_the_errors_that_can_happen_are_listed_and_no_others(action: Action) -> None:
    operation = operation_of(action)
    fields = action.input.model_fields.keys()
    guarded, created = "expected_revision" in fields, operation["responses"].keys() & {"201"}
    decides = action.name in ("reflect", "accept_invitation")
    expected = ALWAYS | {str(status) for status in (action.status, *action.also)}
    expected |= BODY if "requestBody" in operation else set()
    expected |= {"402"} if action.name in QUOTA else set()
    forbids = action.writes or decides or action.name in FOR_ALL_BUT_SCOPED
    expected |= {"403"} if forbids else set()
    finds = action.path_fields or action.name in NAMED or action.name == "accept_invitation"
    expected |= {"404"} if finds else set()
    expected |= {"409"} if guarded or created or action.name in CONFLICTS else set()
    expected |= {"412"} if guarded else set()
    expected |= {"500"} if action.name == "list_disks" else set()  # search_failed
    tagged = {"revision", "updated_at"} <= action.output.properties.keys()
    expected |= {"304"} if tagged and action.method == "GET" else set()
    assert operation["responses"].keys() == expected


def test_probes_list_theirs() -> None:
    listed = {path: {*openapi()["paths"][path]["get"]["responses"]} for path in PROBES}
    assert listed == {
        "/healthz": {"200"},
        "/readyz": {"200", "503"},
        "/metrics": {"200", "401", "429", "503"},
    }


@pytest.mark.parametrize("action", ROUTED.values(), ids=ROUTED)
def test_headers_are_listed_where_they_are_read(action: Action) -> None:
    listed = {
        parameter["name"]
        for parameter in operation_of(action).get("parameters", ())
        if parameter["in"] == "header"
    }
    expected = set()
    if action.method == "POST" and action.status == 201:
        expected.add("Idempotency-Key")
    if "expected_revision" in action.input.model_fields:
        expected.add("If-Match")
    if "304" in operation_of(action)["responses"]:
        expected.add("If-None-Match")
    assert listed == expected


# -- clients of generators


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, House]]:
    with live_house(tmp_path_factory.mktemp("live") / "data") as served:
        yield served


@pytest.fixture
def document(live: tuple[str, House], tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_bytes(httpx.get(f"{live[0]}/openapi.json").content)
    return path


@pytest.mark.slow
def test_a_python_client_is_generated_in_full_and_works(
    live: tuple[str, House], document: Path
) -> None:
    address, house = live
    tools = own_environment("clients") / "bin"
    run = subprocess.run(
        [
            *(tools / "openapi-python-client", "generate", "--path", document),
            *("--output-path", document.parent / "commonplace_client", "--meta", "none"),
            "--fail-on-warning",
        ],
        env=os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "arning" not in run.stdout + run.stderr, run.stdout + run.stderr
    made = {path.stem for path in document.parent.glob("commonplace_client/api/*/*.py")}
    assert made - {"__init__"} == ROUTED.keys() | {"healthz", "readyz", "metrics"}
    shutil.copy(CLIENTS / "use_client.py", document.parent)
    used = subprocess.run(
        [tools / "python", "use_client.py", address, house.tokens["owner"]],
        cwd=document.parent,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (used.returncode, used.stdout) == (0, "done\n"), used.stderr


@pytest.mark.slow
def test_a_typescript_client_is_generated_typed_and_works(
    live: tuple[str, House], document: Path
) -> None:
    address, house = live
    node.install()
    modules, folder = node.CACHE / "node_modules", document.parent
    schema, script = folder / "schema.d.ts", folder / "use_client.ts"
    run = node.run_node(
        *(modules / "openapi-typescript" / "bin" / "cli.js", document, "--output", schema),
        "--default-non-nullable=false",  # what has a default may be left out
    )
    assert run.returncode == 0, run.stdout + run.stderr
    for name in ROUTED:
        assert f'operations["{name}"]' in schema.read_text()
    (folder / "node_modules").symlink_to(modules)
    (folder / "package.json").write_text('{"type": "module"}')
    shutil.copy(CLIENTS / script.name, script)
    checked = node.run_node(
        *(modules / "typescript" / "bin" / "tsc", "--noEmit", "--strict", "--skipLibCheck"),
        *("--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom,dom.iterable"),
        *("--allowImportingTsExtensions", script),
    )
    assert checked.returncode == 0, checked.stdout
    used = node.run_node(script, address, house.tokens["stranger"])
    assert (used.returncode, used.stdout) == (0, "done\n"), used.stderr
