"""The default reflector: rules on cue words and layout. Free, fast and deterministic."""

from anyio import to_thread

from commonplace.model import Proposal
from commonplace.settings import Settings


class LocalReflector:
    def __init__(self, settings: Settings) -> None:
        """Take no settings."""

    async def reflect(self, title: str, text: str, limit: int) -> list[Proposal]:
        from commonplace.adapters.reflect import rules  # fifty patterns, which few processes need

        return await to_thread.run_sync(rules.reflect, text, limit)

    async def close(self) -> None:
        """Do nothing: no model is loaded."""
