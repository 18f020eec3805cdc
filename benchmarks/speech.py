"""Which languages the default model refuses, and what three interruptions of a transcription cost.

    python benchmarks/speech.py [--recordings LANGUAGE=FOLDER ...] [--minutes 30]

espeak-ng reads a text in each language, with two voices. FOLDERs hold short recordings of people, such as the prompts
in Debian's packages asterisk-core-sounds-*; those of two seconds or more are joined to recordings of 45 seconds.
"""

import argparse
import random
import subprocess
import time
import wave
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import numpy as np

from commonplace.adapters.transcribe import audio
from commonplace.adapters.transcribe.whisper import LocalTranscriber
from commonplace.errors import IngestFailed
from commonplace.model import Begun, Json
from commonplace.settings import Settings

# Universal Declaration of Human Rights, articles 1 and 3.
TEXTS = {
    "en": (
        "All human beings are born free and equal in dignity and rights. They are endowed with reason and "
        "conscience and should act towards one another in a spirit of brotherhood. Everyone has the right to "
        "life, liberty and security of person. No one shall be held in slavery or servitude."
    ),
    "de": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen "
        "begabt und sollen einander im Geist der Brüderlichkeit begegnen. Jeder hat das Recht auf Leben, "
        "Freiheit und Sicherheit der Person. Niemand darf in Sklaverei oder Leibeigenschaft gehalten werden."
    ),
    "fr": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et"
        " de conscience et doivent agir les uns envers les autres dans un esprit de fraternité. Tout individu"
        " a droit à la vie, à la liberté et à la sûreté de sa personne."
    ),
    "es": (
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón"
        " y conciencia, deben comportarse fraternalmente los unos con los otros. Todo individuo tiene derecho"
        " a la vida, a la libertad y a la seguridad de su persona."
    ),
    "it": (
        "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e "
        "di coscienza e devono agire gli uni verso gli altri in spirito di fratellanza. Ogni individuo ha "
        "diritto alla vita, alla libertà ed alla sicurezza della propria persona."
    ),
    "nl": (
        "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand"
        " en geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen. Een ieder "
        "heeft het recht op leven, vrijheid en onschendbaarheid van zijn persoon."
    ),
    "pt": (
        "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
        "consciência, devem agir uns para com os outros em espírito de fraternidade. Todo indivíduo tem "
        "direito à vida, à liberdade e à segurança pessoal."
    ),
    "pl": (
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni "
        "rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa. Każdy człowiek ma prawo do"
        " życia, wolności i bezpieczeństwa swej osoby."
    ),
    "ru": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и "
        "совестью и должны поступать в отношении друг друга в духе братства. Каждый человек имеет право на "
        "жизнь, на свободу и на личную неприкосновенность."
    ),
    "sv": (
        "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och "
        "samvete och bör handla gentemot varandra i en anda av broderskap. Var och en har rätt till liv, "
        "frihet och personlig säkerhet."
    ),
    "cs": (
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím "
        "a mají spolu jednat v duchu bratrství. Každý má právo na život, svobodu a osobní bezpečnost."
    ),
    "cmn": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。人人有权享有生命、自由和人身安全。任何人不得使为奴隶或奴役。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "tr": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
        "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler. Yaşamak, hürriyet ve kişi emniyeti "
        "her ferdin hakkıdır."
    ),
    "hi": (
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें "
        "बुद्धि और अन्तरात्मा की देन प्राप्त है।"
    ),
}
VOICES = {"en": ("en-us", "en-gb", "en-gb-scotland", "en+f3")}
PIECE_SECONDS, PROMPTS = 45, 5


def speak(voice: str, text: str, path: Path) -> Path:
    subprocess.run(["espeak-ng", "-v", voice, "-s", "150", "-w", path, text], check=True)
    return path


def save(samples: Any, path: Path) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, audio.RATE, 0, "NONE", ""))
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return path


def joined(folder: Path, into: Path) -> list[Path]:
    """Join recordings of people, in an order by chance, to some of PIECE_SECONDS."""
    files = [file for file in sorted(folder.rglob("*")) if file.suffix in (".wav", ".gsm")]
    random.Random(7).shuffle(files)
    made: list[Path] = []
    held: list[Any] = []
    for file in files:
        try:
            samples = np.concatenate([piece.samples for piece in audio.pieces(file)])
        except IngestFailed:
            continue
        if len(samples) >= 2 * audio.RATE:
            held += [samples, np.zeros(audio.RATE // 3, np.float32)]
        if sum(map(len, held)) >= PIECE_SECONDS * audio.RATE:
            made.append(save(np.concatenate(held), into / f"{folder.name}-{len(made)}.wav"))
            held = []
            if len(made) == PROMPTS:
                break
    return made


async def nothing(_: Any) -> None:
    """Report no progress."""


async def is_refused(transcriber: LocalTranscriber, recording: Path) -> bool:
    try:
        await transcriber.transcribe(recording, nothing)
    except IngestFailed:
        return True
    return False


async def languages(folders: list[tuple[str, Path]], work: Path) -> None:
    transcriber = LocalTranscriber(Settings())
    print("| language | spoken by | recordings | refused |\n|---|---|---|---|")
    rows = [
        (
            code,
            "espeak-ng",
            [
                speak(voice, text, work / f"{voice}.wav")
                for voice in VOICES.get(code, (code, f"{code}+f2"))
            ],
        )
        for code, text in TEXTS.items()
    ] + [(code, f"people ({folder.name})", joined(folder, work)) for code, folder in folders]
    for code, speaker, recordings in rows:
        refused = [await is_refused(transcriber, each) for each in recordings]
        print(f"| {code} | {speaker} | {len(refused)} | {sum(refused)} |", flush=True)
    await transcriber.close()


async def interruptions(minutes: float, work: Path) -> None:
    """Interrupt a transcription at a quarter, a half and three quarters of its pieces."""
    one = next(iter(audio.pieces(speak("en-us", TEXTS["en"], work / "one.wav")))).samples
    path = save(np.tile(one, round(minutes * 60 * audio.RATE / len(one))), work / "long.wav")
    began = time.process_time()
    whole = await LocalTranscriber(Settings()).transcribe(path, nothing)
    alone, began = time.process_time() - began, time.process_time()
    state: Json | None = None
    for stop in (0.25, 0.5, 0.75, 1.1):
        with anyio.CancelScope() as scope:

            async def remember(now: Json | None) -> None:
                nonlocal state
                state = now

            async def tell(share: float, scope: Any = scope, stop: float = stop) -> None:
                if share > stop:
                    scope.cancel()

            found = await LocalTranscriber(Settings()).transcribe(
                path, tell, Begun(state, remember, anyio.sleep)
            )
    same = found.utterances == whole.utterances
    cost = (time.process_time() - began) / alone
    print(f"\n{minutes:g} minutes, interrupted three times: {cost:.2f} of the processor time of one"
          f" run ({alone:.0f} s); the text is {'the same' if same else 'another'}.")  # fmt: skip


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--recordings", action="append", default=[], metavar="LANGUAGE=FOLDER")
    parser.add_argument("--minutes", type=float, default=30)
    asked = parser.parse_args()
    folders = [
        (code, Path(folder)) for code, _, folder in (e.partition("=") for e in asked.recordings)
    ]
    with TemporaryDirectory() as work:
        await languages(folders, Path(work))
        await interruptions(asked.minutes, Path(work))


if __name__ == "__main__":
    anyio.run(main)
