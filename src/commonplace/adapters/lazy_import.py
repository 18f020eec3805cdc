"""Import the adapter that a setting names, or import one with its first call."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from commonplace.errors import ConfigurationError
from commonplace.settings import PREFIX, Settings


def chosen(setting: str, table: Mapping[str, str], package: str, settings: Settings) -> Any:
    """Make the adapter that a setting names. `table` maps names to `module:Class` in `package`."""
    name = getattr(settings, setting)
    if name not in table:
        raise ConfigurationError(
            f"{PREFIX}{setting.upper()} must be one of {', '.join(table)}, not {name!r}."
        )
    module, adapter = table[name].split(":")
    return getattr(import_module(f"{package}.{module}"), adapter)(settings)


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
