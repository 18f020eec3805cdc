"""An action: something that can be done, declared once for MCP, REST, command line and docs."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, get_type_hints

from commonplace.interfaces.actions.fields import Input
from commonplace.interfaces.actions.shapes import OK, Call, Shape
from commonplace.model import Caller, Capability, Item, Json, Progress, no_progress

if TYPE_CHECKING:  # they bring every adapter along, and `--help` should not wait for them
    from commonplace.core.people.authorization import Needs
    from commonplace.core.services import Services

Run = Callable[["Services", Caller, Any], Awaitable[Any]]
_PATH_FIELD = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Tool:
    """How an action is an MCP tool: its description for agents, and the text of its answers."""

    description: str
    text: Callable[[Json, Any], str]  # of the structured answer and the core's value
    input: type[Input] | None = None  # where REST has another one
    shape: Shape | None = None  # of structured answers, where REST has another one
    shown: str = ""  # fields of the answer that its schema names, if not all
    missing: Json | None = None  # the answer where the core finds nothing, instead of an error
    defaults: Mapping[str, Any] = field(default_factory=dict)  # that differ from REST's
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    writes: bool = False  # it may, for those who can write, though reading is enough to call it


@dataclass(frozen=True)
class Answer:
    """A value of the core, and its JSON."""

    value: Any
    json: Json


@dataclass(frozen=True)
class Done:
    """What an action of `manage` did: the item, a sentence, and facts for `data`."""

    item: Item | None
    message: str
    data: Json
    lines: Sequence[str] = ()  # that say in words what `data` lists


@dataclass(frozen=True)
class Action:
    name: str  # the operationId, and the tool's name or the action's of `manage`
    title: str
    input: type[Input]
    verb: str  # the method of the core, such as `library.update`
    output: Shape = OK
    route: str = ""  # such as `PATCH /api/v1/items/{item_id}`
    cli: str = ""  # the command, such as `task update`
    tool: Tool | None = None
    manage: Callable[[Any, Call], Done] | None = None  # tells it as an action of `manage`
    description: str = ""
    status: int = 200
    also: Mapping[int, str] = field(default_factory=dict)  # other statuses, and when
    status_of: Callable[[Any], int] | None = None  # picks one of them by the value
    query: tuple[str, ...] = ()  # fields that a POST takes from the address
    given: Mapping[str, Any] = field(default_factory=dict)  # arguments that are no fields
    run: Run | None = None  # in the place of calling `verb` with the input's attributes
    expand: Run | None = None  # reads more for `output`, of the value that `verb` returned
    example: Json | None = None
    address: str = ""  # fields of the answer that are paths here, and addresses for clients
    check: Callable[[Json], None] | None = None  # refuses values before they are parsed
    secret: str = ""  # the field of the answer that is shown once and never stored

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    @cached_property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(_PATH_FIELD.findall(self.path))

    @cached_property
    def _method(self) -> Callable[..., Awaitable[Any]]:
        from commonplace.core.services import Services

        service, _, method = self.verb.partition(".")
        found: Callable[..., Awaitable[Any]] = getattr(get_type_hints(Services)[service], method)
        return found

    @cached_property
    def needs(self) -> "Needs | None":
        """What the caller needs, as the core's method declares it. None: the method decides."""
        needs: Needs | None = getattr(self._method, "needs", None)
        return needs if needs is None or needs.name else replace(needs, name=self.name)

    @property
    def writes(self) -> bool:
        return self.needs is not None and self.needs.capability is Capability.WRITE

    @cached_property
    def _parameters(self) -> tuple[str, ...]:
        """The parameters of the method that the input has, as fields or properties."""
        _, _, *wanted = signature(self._method).parameters  # all but self and the caller
        known = {*self.input.model_fields, *dir(self.input)}
        return tuple(name for name in wanted if name in known)

    @cached_property
    def _reports(self) -> bool:
        return self.run is None and "progress" in signature(self._method).parameters

    async def call(
        self, services: "Services", caller: Caller, args: Input, progress: Progress = no_progress
    ) -> Any:
        """Run the action. What the input leaves open is up to the core's defaults."""
        if self.run is not None:
            return await self.run(services, caller, args)
        values = {name: getattr(args, name, None) for name in self._parameters}
        given = {name: value for name, value in values.items() if value is not None}
        if self._reports:
            given["progress"] = progress
        return await attrgetter(self.verb)(services)(caller, **{**given, **self.given})

    def status_for(self, answer: Answer) -> int:
        return self.status_of(answer.value) if self.status_of else self.status

    async def answer(self, services: "Services", caller: Caller, args: Input) -> Answer:
        """Run the action, and return its answer in full."""
        value = await self.call(services, caller, args)
        if self.expand is not None:
            value = await self.expand(services, caller, value)
        return Answer(value, self.output(value, Call(args, services.settings)))
