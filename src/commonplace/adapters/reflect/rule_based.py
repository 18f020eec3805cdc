"""The default reflector: rules on cue words and on how notes are laid out. Free, quick, and always the same."""

from anyio import to_thread

from commonplace.model import Proposal
from commonplace.settings import Settings


class LocalReflector:
    def __init__(self, settings: Settings) -> None:
        pass

    async def reflect(self, title: str, text: str, limit: int) -> list[Proposal]:
        from commonplace.adapters.reflect.rules import (
            reflected,
        )  # fifty patterns, which few processes need

        return await to_thread.run_sync(reflected, text, limit)

    async def close(self) -> None:
        pass
