"""Files of other programs that are added on their own: mail, notebooks, a single note."""

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from commonplace.adapters import exports
from commonplace.adapters.exports.parts import Output
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, SavedAs

_LARGEST = 100_000_000  # bytes of attachments, which an import keeps
_SEVERAL = (
    "The file holds several notes, messages or subscriptions. Import it: on the page Import, or by "
    "`commonplace import FILE`."
)


def read(source: Source, caps: Caps) -> Extracted:
    with TemporaryDirectory(prefix="commonplace-") as folder:
        out = Output(Path(folder), _LARGEST)
        found = list(islice(exports.read(source, caps, out), 2))
    if not found:
        raise IngestFailed("The file has no text.")
    if len(found) > 1 or found[0].kind != SavedAs.ITEM:
        raise IngestFailed(_SEVERAL)
    [saved] = found
    if saved.lost:
        raise IngestFailed(saved.lost)
    names = ", ".join(file.name for file in saved.attachments)
    return Extracted(
        saved.title,
        saved.text + (f"\n\nAttached, and not kept here: {names}" if names else ""),
        published_at=saved.at,
        author=saved.author or None,
        tags=saved.tags,
    )
