"""Character errors of OCR on rendered pages, clean and degraded, by language.

Pages are rotated by up to a degree, blurred, grainy and saved as JPEG. Fonts: Debian's
fonts-liberation, fonts-dejavu-core and fonts-noto-cjk; a language without its font is left out.
"""

import io
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from commonplace.adapters.extract import image_ocr

_FONTS = Path("/usr/share/fonts")
_LATIN = ("truetype/liberation/LiberationSerif-Regular.ttf", "truetype/dejavu/DejaVuSans.ttf")
_CJK = ("opentype/noto/NotoSerifCJK-Regular.ttc", "opentype/noto/NotoSansCJK-Regular.ttc")
_KINDS = ("clean", "scan", "noisy")

# (language, text, fonts, errors with Tesseract's English model as before, by kind)
SAMPLES = (
    (
        "English",
        "The committee met on Tuesday at half past nine. After a long discussion about "
        "the budget for 2024, members agreed to repair the roof first and to postpone "
        "the new heating until spring. Costs: $12,450 in total.",
        _LATIN,
        "0.000 / 0.000 / 0.059",
    ),
    (
        "German",
        "Der Ausschuss traf sich am Dienstag um halb zehn. Nach längerer Aussprache "
        "über den Haushalt beschloss man, zuerst das Dach zu reparieren und die "
        "größere Heizung bis zum Frühjahr zu verschieben. Kosten: 12.450 €.",
        _LATIN,
        "0.034 / 0.034 / 0.117",
    ),
    (
        "French",
        "Le comité s'est réuni mardi à neuf heures et demie. Après une longue "
        "discussion sur le budget, les membres ont décidé de réparer d'abord la "
        "toiture et de reporter le chauffage au printemps prochain, où tout sera moins "
        "cher.",
        _LATIN,
        "0.018 / 0.019 / 0.093",
    ),
    (
        "Spanish",
        "El comité se reunió el martes a las nueve y media. Después de una larga "
        "discusión sobre el presupuesto, decidieron reparar primero el tejado y "
        "aplazar la calefacción hasta la primavera del próximo año. ¿Quién pagará?",
        _LATIN,
        "0.039 / 0.043 / 0.090",
    ),
    (
        "Polish",
        "Komisja spotkała się we wtorek o wpół do dziesiątej. Po długiej dyskusji nad "
        "budżetem postanowiono najpierw naprawić dach, a nowe ogrzewanie odłożyć do "
        "wiosny. Łączny koszt wyniósł dwanaście tysięcy złotych.",
        _LATIN,
        "0.105 / 0.108 / 0.369",
    ),
    (
        "Czech",
        "Výbor se sešel v úterý v půl desáté. Po dlouhé diskusi o rozpočtu se členové "
        "dohodli, že nejprve opraví střechu a nové topení odloží na jaro. Příští "
        "schůze bude v říjnu, řekl předseda.",
        _LATIN,
        "0.158 / 0.163 / 0.253",
    ),
    (
        "Swedish",
        "Nämnden träffades på tisdagen klockan halv tio. Efter en lång diskussion om "
        "budgeten beslöt man att först laga taket och skjuta upp den nya värmen till "
        "våren. Åsa höll med om förslaget.",
        _LATIN,
        "0.073 / 0.073 / 0.141",
    ),
    (
        "Italian",
        "Il comitato si è riunito martedì alle nove e mezza. Dopo una lunga "
        "discussione sul bilancio, i membri hanno deciso di riparare prima il tetto e "
        "di rinviare il nuovo riscaldamento alla primavera, perché così è più "
        "economico.",
        _LATIN,
        "0.027 / 0.030 / 0.095",
    ),
    (
        "Portuguese",
        "A comissão reuniu-se na terça-feira às nove e meia. Após longa discussão "
        "sobre o orçamento, os membros decidiram reparar primeiro o telhado e adiar o "
        "novo aquecimento até à primavera. Não houve objeções.",
        _LATIN,
        "0.069 / 0.070 / 0.143",
    ),
    (
        "Dutch",
        "De commissie kwam dinsdag om half tien bijeen. Na een lange discussie over de "
        "begroting besloten de leden eerst het dak te herstellen en de nieuwe "
        "verwarming uit te stellen tot het voorjaar.",
        _LATIN,
        "0.000 / 0.000 / 0.054",
    ),
    (
        "Turkish",
        "Komisyon salı günü saat dokuz buçukta toplandı. Bütçe üzerine uzun bir "
        "tartışmadan sonra üyeler önce çatının onarılmasına, yeni ısıtmanın ise "
        "ilkbahara ertelenmesine karar verdi. Şimdilik böyle.",
        _LATIN,
        "0.145 / 0.145 / 0.395",
    ),
    (
        "Vietnamese",
        "Ủy ban đã họp vào thứ ba lúc chín giờ rưỡi. Sau một cuộc thảo luận dài về "
        "ngân sách, các thành viên đồng ý sửa mái nhà trước và hoãn hệ thống sưởi mới "
        "đến mùa xuân.",
        _LATIN,
        "0.366 / 0.350 / 0.561",
    ),
    (
        "Chinese",
        "委员会于星期二上午九点半开会。经过对预算的长时间讨论，成员们同意先修理屋顶，并将新的供暖系统推迟到明年春天。总费用为一万二千四百五十元。",
        _CJK,
        "1.033 / 1.000 / 1.000",
    ),
    (
        "Japanese",
        "委員会は火曜日の午前九時半に開かれました。予算について長い議論をした後、まず屋根を修理し、新しい暖房は春まで延期すること"
        "に決めました。費用は全部で一万二千円です。",
        _CJK,
        "1.019 / 1.000 / 1.000",
    ),
)


def _page(text: str, font: Path, size: int, kind: str) -> Image.Image:
    rng, letters = np.random.default_rng(size), ImageFont.truetype(font, size)
    units = text.split(" ") if " " in text else list(text)
    joint, lines = " " if " " in text else "", [""]
    for unit in units:
        longer = f"{lines[-1]}{joint if lines[-1] else ''}{unit}"
        if letters.getlength(longer) > 30 * size:
            lines.append(unit)
        else:
            lines[-1] = longer
    image = Image.new("L", (34 * size, int(1.6 * size) * (len(lines) + 3)), 255)
    for n, line in enumerate(lines, 1):
        ImageDraw.Draw(image).text((2 * size, int(1.6 * size) * n), line, font=letters, fill=20)
    if kind == "clean":
        return image
    image = image.rotate(rng.uniform(-1, 1), Image.Resampling.BICUBIC, fillcolor=255)
    dots = np.asarray(image.filter(ImageFilter.GaussianBlur(0.7)), np.float32) * 0.85 + 25
    dots += rng.normal(0, 14 if kind == "noisy" else 6, dots.shape)
    if kind == "noisy":
        speckles = rng.random(dots.shape)
        dots[speckles < 0.004], dots[speckles > 0.996] = 0, 255
    saved = io.BytesIO()
    Image.fromarray(np.clip(dots, 0, 255).astype("uint8")).save(saved, "JPEG", quality=60)
    return Image.open(saved)


def _errors(text: str, read: str) -> float:
    """Return the edit distance without white space, per character."""
    text, read = "".join(text.split()), "".join(read.split())
    above = list(range(len(read) + 1))
    for n, one in enumerate(text, 1):
        row = [n]
        for m, other in enumerate(read, 1):
            row.append(min(above[m] + 1, row[-1] + 1, above[m - 1] + (one != other)))
        above = row
    return above[-1] / len(text)


def _rows() -> Iterator[tuple[str, str, str]]:
    began, pages = time.process_time(), 0
    for language, text, names, before in SAMPLES:
        fonts = [_FONTS / name for name in names if (_FONTS / name).exists()]
        if not fonts:
            continue
        now = []
        for kind in _KINDS:
            made = [_page(text, font, size, kind) for font in fonts for size in (22, 34)]
            now.append(mean(_errors(text, image_ocr.text_in(page)) for page in made))
            pages += len(made)
        yield (
            f"{language} ({' / '.join(_KINDS)})",
            before,
            " / ".join(f"{each:.3f}" for each in now),
        )
    if pages:
        yield "cpu-seconds a page", ".09", f"{(time.process_time() - began) / pages:.2f}"


async def figures() -> list[tuple[str, str, str]]:
    return list(_rows())
