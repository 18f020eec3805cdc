"""Draw docs/pictures/terminal.svg: real commands on a new library, and their output."""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).parents[1] / "docs" / "pictures" / "terminal.svg"
NOTES = {
    "pooling.md": "# Redis connection pooling\n\nThe pool must hold at least as many connections as there are concurrent "
    "requests. When it is exhausted, callers block until they time out with ERR_POOL_7731.",
    "retro.md": "# Retro of week 20\n\nWe ship the API docs on Friday. The rename of folders is put off until the import is done.",
    "garden.md": "# Garden\n\nTomatoes want sun and even watering; peas go in before the last frost.",
}
COMMANDS = [
    "add pooling.md retro.md garden.md --folder Work",
    'search "how large should the pool be?" --limit 1',
    "search ERR_POOL_7731 --mode keyword --limit 1",
    "token create --name Claude --folder Work",
]


def main() -> None:
    console = Console(record=True, width=108, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        for name, text in NOTES.items():
            (Path(folder) / name).write_text(text)
        env = os.environ | {"COMMONPLACE_DATA_DIR": f"{folder}/data", "COLUMNS": "108"}
        for command in COMMANDS:
            done = subprocess.run(
                [sys.executable, "-m", "commonplace", *shlex.split(command)],
                cwd=folder,
                env=env,
                check=True,
                capture_output=True,
                text=True,
            )
            console.print(Text(f"$ commonplace {command}", style="bold"))
            console.print(Text(re.sub(r"sk_[\w-]+", "sk_" + "·" * 43, done.stdout.rstrip()) + "\n"))
    TARGET.parent.mkdir(exist_ok=True)
    drawn = console.export_svg(title="Commonplace")
    TARGET.write_text(
        re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    )  # rich would load fonts from elsewhere


if __name__ == "__main__":
    main()
