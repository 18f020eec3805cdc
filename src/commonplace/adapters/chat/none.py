"""No language model: the rules on this machine do the work."""

from commonplace.settings import Settings


def no_model(settings: Settings) -> None:
    """Return None."""
