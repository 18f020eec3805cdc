"""The services that other tests stand on are the real ones."""

from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from tests.services import running_postgres


def test_postgres_has_pgvector(postgres_url: str, new_schema: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"CREATE SCHEMA {new_schema}")
        connection.execute(f"SET LOCAL search_path = {new_schema}, public")
        connection.execute("CREATE TABLE points (embedding halfvec(3))")
        connection.execute("INSERT INTO points VALUES ('[1,0,0]'), ('[0,1,0]')")
        nearest = connection.execute(
            "SELECT embedding <#> '[0,1,0]' FROM points ORDER BY 1"
        ).fetchone()
        version = connection.info.server_version
    assert nearest == (-1.0,)
    assert version >= 150000


@pytest.mark.slow
def test_postgres_leaves_no_process_and_no_folder_even_when_killed() -> None:
    with running_postgres() as (url, pid):
        server = psutil.Process(pid)
        folder = Path(server.cwd())
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        server.kill()
        server.wait(timeout=10)
    assert not server.is_running()
    assert not folder.exists()


def test_redis_answers_and_keeps_nothing_on_disk(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()
        assert client.config_get("save") == {"save": ""}
