"""One way for a setting to pick an adapter: by name out of a table, imported only when it is the one."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from commonplace.errors import ConfigurationError
from commonplace.settings import PREFIX, Settings


def chosen(setting: str, table: Mapping[str, str], package: str, settings: Settings) -> Any:
    """`table` says `module:Class` within the package; the class is made from the settings."""
    name = getattr(settings, setting)
    if name not in table:
        raise ConfigurationError(f"{PREFIX}{setting.upper()} must be one of {', '.join(table)}, not {name!r}.")
    module, adapter = table[name].split(":")
    return getattr(import_module(f"{package}.{module}"), adapter)(settings)
