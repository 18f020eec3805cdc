"""Migrations: create the schema, run what a database lacks, refuse versions that cannot be read.

`schema/ENGINE.sql` is the whole schema of release 0.1.0. Later changes are files of their own, one
for each engine under the same number, such as `schema/0101_name.sqlite.sql`. A released file never
changes.
"""

from importlib.resources import files
from typing import Literal

from commonplace.database.transaction import Tx
from commonplace.errors import ConfigurationError

FIRST = 100  # databases made before release 0.1.0 have lower numbers


def migrations(engine: str) -> list[tuple[int, str]]:
    """Return (version, SQL), oldest first, starting with the whole schema."""
    folder = files(__package__).joinpath("schema")
    later = sorted(file.name for file in folder.iterdir() if file.name.endswith(f".{engine}.sql"))
    return [
        (FIRST, folder.joinpath(f"{engine}.sql").read_text()),
        *((int(name[:4]), folder.joinpath(name).read_text()) for name in later),
    ]


def migrate(tx: Tx) -> None:
    """Bring a database up to date. The caller holds a lock, so that only one process does so."""
    tx.run("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    found = tx.all("SELECT max(version) AS version FROM schema_version")[0]["version"] or 0
    if found:
        check_version(found, "database")
    for version, script in migrations(tx.engine):
        if version > found:
            tx.run(script)
            tx.run("INSERT INTO schema_version VALUES (:version)", version=version)


def check_version(found: int, made: Literal["database", "backup"]) -> None:
    """Refuse a database or backup whose schema this version cannot read."""
    known = migrations("sqlite")[-1][0]
    if found > known:
        raise ConfigurationError(
            f"The {made} was written by a newer Commonplace (schema {found}; this version knows "
            f"{known}). Upgrade Commonplace, or point it at another data folder. "
            "Nothing was changed."
        )
    if found < FIRST:
        first = "Export it" if made == "database" else "Restore and export it"
        raise ConfigurationError(
            f"This {made} was made by an earlier version of Commonplace (schema {found}). "
            f"{first} with that version: commonplace export DIR; then import it here, into a new "
            "data folder or database schema: commonplace import DIR. Nothing was changed."
        )
