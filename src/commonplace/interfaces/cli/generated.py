"""Commands made of actions: their fields as parameters, and running one with what was given."""

import sys
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Annotated, Any, get_args

import typer

from commonplace.errors import Invalid, NotFound
from commonplace.interfaces.actions.action import Action, Answer
from commonplace.interfaces.actions.fields import Cli, Patch, mark, parse
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.cli.command import Command, Session
from commonplace.interfaces.cli.render import render
from commonplace.model import Json, find_folders
from commonplace.text import front_matter

# Ids in whose place a name does: the action that lists them, the field of the name, and the noun.
NAMED = {
    "folder_id": ("list_folders", "name", "folder"),
    "parent_id": ("list_folders", "name", "folder"),
    "feed_id": ("list_feeds", "url", "feed"),
    "token_id": ("list_tokens", "name", "token"),
    "person_id": ("list_members", "email", "member"),
}
TYPES: dict[str, Any] = {"array": list[str], "boolean": bool}  # others are texts until parsed
METAVARS = {"integer": "<int>", "number": "<float>", "array": "<str>"}
LARGE = 1_000_000  # a limit that needs no mention


@dataclass(frozen=True, slots=True)
class CliField:
    """A field of an action's input at the command line."""

    name: str
    mark: Cli
    null: str | None  # the text that stands for null, where it may be null

    @property
    def label(self) -> str:
        """The name of the option, or of the argument."""
        if self.mark.argument:
            return self.mark.name or self.name.removesuffix("_id").upper()
        return self.mark.name.partition("/")[0] or f"--{self.name.replace('_', '-')}"

    def parameter(self, schema: Json, required: bool) -> Parameter:
        """Declare it for Typer."""
        if "anyOf" in schema:  # with null
            schema = {**schema["anyOf"][0], **schema}
        kind, help = schema.get("type", "string"), self._help(schema)
        default: Any = Parameter.empty if required else None
        if self.mark.argument:
            default = "-" if self.mark.stdin else default
            info = typer.Argument(metavar=self.label, help=help, show_default=False)
        else:
            info = typer.Option(self.mark.name or self.label, metavar=METAVARS.get(kind), help=help)
        annotation: Any = Annotated[TYPES.get(kind, str) | None, info]
        return Parameter(self.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def _help(self, schema: Json) -> str:
        about = schema.get("description", "Its id" if self.name.endswith("_id") else "")
        if self.name in NAMED:
            _, key, noun = NAMED[self.name]
            about = f"{f'The {noun}' if self.mark.argument else about}, by {key} or id"
        if self.null is not None:
            about = about.replace("null", self.null or "''")
        choices = schema.get("enum") or schema.get("items", {}).get("enum", ())
        least, most = schema.get("minimum"), schema.get("maximum", LARGE)
        default = schema.get("default")
        parts = (
            about,
            f"{'one' if about else 'One'} of {', '.join(choices)}"
            if any(each not in about for each in choices)
            else "",
            f"{least:,} to {most:,}" if least is not None and most < LARGE else "",
            "repeatable" if schema.get("type") == "array" and "several" not in about else "",
            "- reads standard input" if self.mark.stdin else "",
            "'' removes it" if self.null == "" and "''" not in about else "",
            f"default: {default}" if default not in (None, "", [], True, False) else "",
        )
        return f"{'; '.join(filter(None, parts))}."

    async def value(self, session: Session, given: Any) -> Any:
        """Return the action's value of what was given."""
        if given == "-" and self.mark.stdin:
            return front_matter.decode(sys.stdin.buffer.read(), "standard input")
        if given == self.null:
            return None
        if given == [""]:
            return []
        return await find_id(session, self.name, given) if self.name in NAMED else given


def fields_of(path: str) -> dict[str, Parameter]:
    """Return the parameters of a command: the fields of all its actions, ids first.

    Of several fields with one label, it has the first. All actions must require what it requires.
    """
    actions = _actions(path)
    schemas = [action.input.model_json_schema() for action in actions]
    required = set.intersection(*(set(schema.get("required", ())) for schema in schemas))
    found: dict[str, Parameter] = {}
    labels: set[str] = set()
    for action in actions:
        for name in sorted(action.input.model_fields, key=lambda n: n not in action.path_fields):
            field = _field(action, name)
            if field.mark.hidden or name in found or field.label in labels:
                continue
            labels.add(field.label)
            same = [each["properties"][name] for each in schemas if name in each["properties"]]
            if any(schema.get("default") != same[0].get("default") for schema in same):
                same[0].pop("default", None)  # it depends on the action
            found[name] = field.parameter(same[0], name in required)
    return found


def _actions(path: str) -> list[Action]:
    return [action for action in ACTIONS.values() if action.cli == path]


def _field(action: Action, name: str) -> CliField:
    found = mark(action.input, name, Cli())
    null = "" if issubclass(action.input, Patch) else found.null
    optional = type(None) in get_args(action.input.model_fields[name].annotation)
    return CliField(name, found, null if optional else None)


async def find_id(session: Session, field: str, wanted: str) -> str:
    """Return the id of a folder, feed, token or member that is given by its name or id."""
    lister, key, noun = NAMED[field]
    listed = await answer(session, lister, {})
    if noun == "folder":
        found = [node.id for node in find_folders(listed.value, wanted)]
    else:
        rows = listed.json[f"{noun}s"]
        names = {
            row.get(field, row.get("id")): row[key] for row in rows if not row.get("revoked_at")
        }
        found = [known for known, name in names.items() if wanted in (known, name)]
    if not found:
        raise NotFound(f"There is no {noun} {wanted!r}; `commonplace {noun} list` shows them.")
    if len(found) > 1:
        raise Invalid(
            f"{len(found)} {noun}s are named {wanted!r}; `commonplace {noun} list` shows their ids."
        )
    return str(found[0])


# -- running actions


async def answer(session: Session, name: str, given: Json, **more: Any) -> Answer:
    """Run an action with what was given at the command line; `more` goes to the core as it is."""
    action = ACTIONS[name]

    def label(name: str) -> str:
        known = (action, *ACTIONS.values())
        return next(_field(a, name).label for a in known if name in a.input.model_fields)

    wrong = [name for name in given if name not in action.input.model_fields]
    if wrong:
        raise Invalid(f"{label(wrong[0])} does not go with the other options; leave it out.")
    values = {name: await _field(action, name).value(session, given[name]) for name in given}
    args = parse(action.input, values, as_text=True, name=label)
    action = replace(action, given={**action.given, **more})
    return await action.answer(session.services, session.caller, args)


def show(session: Session, name: str, found: Answer, given: Json) -> None:
    session.show(found.json, lambda: render(name, found, given))


async def run(session: Session, name: str, given: Json, **more: Any) -> None:
    """Run an action and print its answer."""
    show(session, name, await answer(session, name, given, **more), given)


def _command(path: str) -> Command:
    """Make a command that runs the first of its actions that has all fields which were given."""
    actions = _actions(path)

    async def command(session: Session, given: Json) -> None:
        if path == "search" and not given["query"].strip():
            raise Invalid("Enter a search query.")
        fit = [each for each in actions if given.keys() <= each.input.model_fields.keys()]
        await run(session, [*fit, actions[-1]][0].name, given)

    titles = [action.title[:1].lower() + action.title[1:] for action in actions]
    says = ", or ".join(titles)
    command.__doc__ = f"{says[:1].upper()}{says[1:]}. {actions[0].description}".strip()
    return command


COMMANDS = {action.cli: _command(action.cli) for action in ACTIONS.values() if action.cli}
