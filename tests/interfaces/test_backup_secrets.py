"""What the thief of a backup gets: texts, and no credential that works."""

import gzip
from pathlib import Path

from tests.interfaces.command import Commands


def test_a_backup_holds_no_credential_that_works(data_dir: Path, tmp_path: Path) -> None:
    keys = {
        "jwt_secret": "a secret of more than thirty-two bytes",
        "embedder_key": "key-of-the-embedder",
    }
    cli = Commands(data_dir, **keys)
    cli.text("add", "-", "--title", "Herons", stdin="Herons stand in rivers and wait.")
    secrets = [
        cli.json("token", "create", "--name", "agent", "--write")["token"],
        cli.json("user", "create", "--name", "Bea", "--email", "bea@example.org")["token"],
        cli.text("member", "invite", "--role", "viewer").strip(),
        cli.json("user", "link")["link"].rpartition("/")[2],
        *keys.values(),
    ]
    cli.text("backup", tmp_path / "all.backup")
    stolen = gzip.decompress((tmp_path / "all.backup").read_bytes()).decode()
    assert "Herons stand in rivers" in stolen
    assert [secret for secret in secrets if secret in stolen or secret[4:] in stolen] == []
