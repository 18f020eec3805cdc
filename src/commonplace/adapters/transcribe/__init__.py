"""Transcribers, chosen by the setting `transcriber`. Each is imported only when it is the one."""

from importlib import import_module

from commonplace.errors import ConfigurationError
from commonplace.ports import Transcriber
from commonplace.settings import Settings

TRANSCRIBERS = {
    "local": "local:LocalTranscriber",
    "assemblyai": "assemblyai:AssemblyAITranscriber",
    "gladia": "gladia:GladiaTranscriber",
}


def make_transcriber(settings: Settings) -> Transcriber:
    """The transcriber of the settings. A model is loaded when it is first used; a mistake in the settings shows here."""
    if settings.transcriber not in TRANSCRIBERS:
        known = ", ".join(TRANSCRIBERS)
        raise ConfigurationError(f"COMMONPLACE_TRANSCRIBER must be one of {known}, not {settings.transcriber!r}.")
    module, name = TRANSCRIBERS[settings.transcriber].split(":")
    transcriber: Transcriber = getattr(import_module(f"{__name__}.{module}"), name)(settings)
    return transcriber
