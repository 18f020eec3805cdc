"""Import the adapter that a setting names, or import one with its first call."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from commonplace.errors import ConfigurationError
from commonplace.settings import PREFIX, Settings

T = TypeVar("T")
# Makes the configured adapter. Raises ConfigurationError for wrong settings.
Maker = Callable[[Settings], T]


def maker(setting: str, table: Mapping[str, str], package: str) -> Maker[Any]:
    """Choose by a setting. `table` maps its values to `module:Class` in `package`."""

    def make(settings: Settings) -> Any:
        name = getattr(settings, setting)
        if name not in table:
            raise ConfigurationError(
                f"{PREFIX}{setting.upper()} must be one of {', '.join(table)}, not {name!r}."
            )
        module, adapter = table[name].split(":")
        return getattr(import_module(f"{package}.{module}"), adapter)(settings)

    return make


class Later:
    """A proxy of an adapter that few processes need: the first call imports and makes it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made = make, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now(), name)

    def now(self) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()
