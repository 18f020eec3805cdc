"""One way for a setting to pick an adapter: by name out of a table, imported only when it is the one; and one to wait for it."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from commonplace.errors import ConfigurationError
from commonplace.settings import PREFIX, Settings


def chosen(setting: str, table: Mapping[str, str], package: str, settings: Settings) -> Any:
    """`table` says `module:Class` within the package; the class is made from the settings."""
    name = getattr(settings, setting)
    if name not in table:
        raise ConfigurationError(
            f"{PREFIX}{setting.upper()} must be one of {', '.join(table)}, not {name!r}."
        )
    module, adapter = table[name].split(":")
    return getattr(import_module(f"{package}.{module}"), adapter)(settings)


class Later:
    """Stands for an adapter that few processes need: it is imported and made by the first call."""

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
