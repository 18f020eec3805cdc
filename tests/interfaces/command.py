"""The command line in tests: in this process for most, as a real command where that is the point."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from typer import testing

from commonplace.interfaces.cli.main import app

COMMAND = [
    sys.executable,
    "-P",
    "-c",
    "import sys; sys.argv[0] = 'commonplace'\n"
    "from commonplace.interfaces.cli.main import main; main()",
]

testing._get_command = cache(
    testing._get_command
)  # else every call builds all commands, in four fifths of its time


class Commands:
    """`commonplace ...` on one data folder, with the quick embedder."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        self.env = {
            "COMMONPLACE_DATA_DIR": str(data_dir),
            "COMMONPLACE_EMBEDDER": "static",
            **{f"COMMONPLACE_{name.upper()}": value for name, value in settings.items()},
        }

    def run(
        self, *arguments: object, stdin: str | bytes = "", env: Mapping[str, str] | None = None
    ) -> testing.Result:
        result = testing.CliRunner().invoke(
            app,
            [str(argument) for argument in arguments],
            input=stdin,
            env={**self.env, **(env or {})},
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def text(self, *arguments: object, stdin: str | bytes = "") -> str:
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    def json(self, *arguments: object, stdin: str | bytes = "") -> Any:
        """The answer, which must be all there is on stdout."""
        return json.loads(self.text(*arguments, "--json", stdin=stdin))

    def fails(self, *arguments: object, code: int = 1, stdin: str | bytes = "", **env: str) -> str:
        """What it says on stderr."""
        result = self.run(*arguments, stdin=stdin, env=env)
        assert (result.exit_code, result.stdout) == (code, ""), result.stdout
        assert "Traceback" not in result.stderr
        return result.stderr

    def start(
        self, *arguments: object, extra: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """The real thing, in a process of its own. `extra`: variables of its environment."""
        env = {
            **os.environ,
            **self.env,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **(extra or {}),
        }
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
