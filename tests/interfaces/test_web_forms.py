"""Forms of the web app take their limits, options and checks from the actions."""

import re
from pathlib import Path

import pytest
from starlette.datastructures import FormData

from commonplace.errors import Invalid
from commonplace.interfaces.web import forms
from commonplace.model import EntityType, Role
from tests.interfaces.house import House
from tests.interfaces.test_web_people import browser, csrf

pytestmark = pytest.mark.anyio
TEMPLATES = Path(forms.__file__).parent / "templates"


def test_no_template_repeats_a_limit() -> None:
    said = [
        f"{file.name}: {found}"
        for file in TEMPLATES.iterdir()
        for found in re.findall(r'\b(?:max|min)length="\d+"', file.read_text())
    ]
    assert not said


@pytest.mark.parametrize(
    ("action", "name", "expected"),
    [
        ("create_token", "name", 'maxlength="200" required'),
        ("update_item", "title", 'maxlength="500" required'),
        ("invite_member", "email", 'type="email" minlength="3" maxlength="320"'),
        ("publish_disk", "summary", 'maxlength="2000"'),
        ("update_task", "due_date", 'type="date"'),
        ("create_token", "expires_days", 'min="1" max="36500"'),
        ("account", "password", 'type="password" minlength="10" maxlength="200" required'),
    ],
)
def test_attributes_come_from_the_field(action: str, name: str, expected: str) -> None:
    assert forms.attributes(action, name) == expected
    assert forms.attributes(action, name, needed=False) == expected.removesuffix(" required")


def test_options_come_from_the_field() -> None:
    assert forms.options("invite_member", "role") == [*Role]
    assert forms.options("list_entities", "entity_type") == [*EntityType]
    assert "someday" in forms.options("update_task", "priority")


def test_a_form_becomes_the_input_of_an_action() -> None:
    form = FormData(
        [("title", "  A   title "), ("tags", "a b,, c"), ("tags", "d"), ("archived", "1")]
    )
    read = forms.form_to_input("update_item", "title tags in_kb category", form, {"item_id": "x"})
    # A checkbox that is not there is not checked; a field that is not there stays as it is; and
    # fields that the page does not have are not read.
    assert read.changes == {"title": "A title", "tags": ("a b", "c", "d"), "in_kb": False}


def test_an_empty_field_is_null_where_it_may_be() -> None:
    form = FormData([("name", "For ever"), ("expires_days", ""), ("due_date", "")])
    assert forms.form_to_input("create_token", "name expires_days", form, {}).expires_days is None
    task = forms.form_to_input("update_task", "due_date", form, {"entity_id": "x"})
    assert task.changes == {"due_date": None}
    with pytest.raises(Invalid, match="Name must not be blank"):
        forms.form_to_input("create_folder", "name", FormData([("name", " ")]), {})


def test_texts_keep_their_lines_and_blanks() -> None:
    form = FormData([("content", "  One\r\n    two  \r\n")])
    read = forms.form_to_input("update_entity", "content", form, {"entity_id": "x"})
    assert read.changes == {"content": "  One\n    two  \n"}


@pytest.mark.parametrize(
    ("path", "form", "route"),
    [
        ("/folders", {"name": "x" * 201}, "/api/v1/folders"),
        ("/folders", {"name": "   "}, "/api/v1/folders"),
        ("/tokens", {"name": "y" * 201}, "/api/v1/tokens"),
        ("/people", {"role": "king"}, "/api/v1/invitations"),
        ("/people", {"role": "viewer", "email": "nobody"}, "/api/v1/invitations"),
    ],
)
async def test_mistakes_are_told_as_the_api_tells_them(
    house: House, path: str, form: dict[str, str], route: str
) -> None:
    async with await browser(house, house.owner.person_id) as client, house.client("owner") as api:
        headers = {"Accept": "application/json", "X-CSRF-Token": await csrf(client)}
        page = await client.post(path, data=form | {"sees": "all"}, headers=headers)
        told = (await api.post(route, json=form)).json()
        # with the label of the field instead of its name
        said = re.sub("`(.)(.*?)`", lambda name: name[1].upper() + name[2], told["message"])
        assert (page.status_code, page.json()) == (422, told | {"message": said})


async def test_a_page_past_the_last_one_turns_to_that(house: House) -> None:
    for n in range(31):
        await house.add(f"Item {n}")
    async with await browser(house, house.owner.person_id) as client:
        for path, last in (
            ("/?q=Item&page=9", "/?q=Item&page=2"),
            ("/disks?shelf=private&page=9", "/disks?shelf=private&page=2"),
        ):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, last)
