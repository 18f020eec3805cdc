"""Forms of the pages, made of the actions: attributes, options, and the input that was sent."""

from functools import cache, partial
from typing import Annotated, Any

from markupsafe import Markup
from starlette.datastructures import FormData

from commonplace.core.people.accounts import LONGEST, SHORTEST
from commonplace.interfaces.actions.fields import (
    Display,
    Input,
    Name,
    chars,
    label,
    mark,
    parse,
)
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.model import Json

LINE = 500  # characters; longer fields are texts, whose blanks and line breaks mean something
ATTRIBUTES = {
    "minLength": "minlength",
    "maxLength": "maxlength",
    "minimum": "min",
    "maximum": "max",
}


class AccountFields(Input):
    """The fields of an account, which only the web app asks for. The core checks them."""

    name: Name
    email: Annotated[str, chars(3, 200), Display(type="email")]
    password: Annotated[str, chars(SHORTEST, LONGEST), Display(type="password")]
    passkey: Annotated[str, chars(0, 100)] = ""


INPUTS = {name: action.input for name, action in ACTIONS.items()} | {"account": AccountFields}


@cache
def field(action: str, name: str) -> Json:
    """Return the schema of a field. `null`: whether it may be; `needed`: whether it must be filled
    in, also where the action leaves it as it is when it is left out; `label`: its name."""
    schema = INPUTS[action].model_json_schema()
    found: Json = schema["properties"][name]
    kinds = [kind for kind in found.get("anyOf", [found]) if kind["type"] != "null"]
    required = name in schema.get("required", ()) or kinds[0].get("minLength", 0) > 0
    null = "anyOf" in found
    said = {"null": null, "needed": required and not null, "label": label(INPUTS[action], name)}
    return {**kinds[0].get("items", {}), **kinds[0], **said}


def attributes(action: str, name: str, *, needed: bool = True) -> Markup:
    """Return the attributes of an input for a field. `needed`: False where it may stay empty."""
    found = field(action, name)
    said = {to: found[key] for key, to in ATTRIBUTES.items() if key in found}
    if said.get("minlength", 0) < 2:  # `required` says it
        said.pop("minlength", None)
    if kind := mark(INPUTS[action], name, Display()).type:
        said = {"type": kind} | ({} if kind == "date" else said)
    parts = [Markup('{}="{}"').format(*pair) for pair in said.items()]
    return Markup(" ").join([*parts, "required"] if needed and found["needed"] else parts)


def options(action: str, name: str) -> list[str]:
    """Return the texts that a field may have."""
    return list(field(action, name)["enum"])


def form_to_input(action: str, fields: str, form: FormData, given: Json) -> Any:
    """Return the input of an action: the named fields of a form, and what else is given.

    An empty field is null where it may be. A checkbox that is not there is not checked. Lists are
    repeated fields, or have commas between their entries.
    """
    values = dict(given)
    for name in fields.split():
        kind, sent = (
            field(action, name),
            [each for each in form.getlist(name) if isinstance(each, str)],
        )
        if kind["type"] == "boolean":
            values[name] = "1" in sent
        elif not sent:
            continue
        elif kind["type"] == "array":
            entries = [" ".join(each.split()) for each in ",".join(sent).split(",")]
            values[name] = [entry for entry in entries if entry]
        else:
            is_line = 0 < kind.get("maxLength", 0) <= LINE
            text = " ".join(sent[-1].split()) if is_line else sent[-1].replace("\r\n", "\n")
            values[name] = None if kind["null"] and not text else text
    return parse(INPUTS[action], values, as_text=True, name=partial(label, INPUTS[action]))
