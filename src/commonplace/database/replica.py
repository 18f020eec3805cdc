"""A read replica of Postgres. Whatever is wrong with it, the primary answers in its place."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg import Connection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from commonplace.database import usage
from commonplace.database.routing import Route

T = TypeVar("T")
PAUSE_SECONDS = 5.0  # in which a replica that failed is not asked
WAIT_SECONDS = 1.0  # for a connection
HANG_SECONDS = 10.0  # after which an answer is not waited for any longer
_CONNECT = {"row_factory": dict_row, "connect_timeout": 2}

log = logging.getLogger(__name__)


class Behind(Exception):
    """The replica lacks writes that the call must see, or cannot be asked."""


class _Connection(Connection[DictRow]):
    """A connection that does not wait for ever: a machine that is gone does not even refuse."""

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, gen: Any) -> Any:
        until = time.monotonic() + HANG_SECONDS
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer within {HANG_SECONDS:.0f} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


class Replica:
    def __init__(
        self,
        url: str,
        connections: int,
        configure: Callable[[Connection[DictRow]], None],
        begin: Callable[[Connection[DictRow]], Any],
    ) -> None:
        """`begin` starts a read-only transaction, and returns it."""
        self._begin = begin
        self._asleep_until = 0.0
        self._pool: ConnectionPool[_Connection] = ConnectionPool(
            url,
            connection_class=_Connection,
            min_size=1,
            max_size=connections,
            open=False,
            configure=configure,
            timeout=WAIT_SECONDS,
            reconnect_timeout=PAUSE_SECONDS,
            num_workers=1,
            name="commonplace-replica",
            kwargs=_CONNECT,
        )

    def open(self) -> None:
        self._pool.open()

    def close(self) -> None:
        self._pool.close()

    @property
    def answers(self) -> bool:
        """Whether it is worth a try."""
        return time.monotonic() >= self._asleep_until

    def read(self, route: Route, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        """Run `work` on a snapshot that has the route's writes. Behind: the primary must."""
        try:
            connection = self._pool.getconn()
        except PoolTimeout as error:
            self._rest(error)
        tx = None
        try:
            tx = self._begin(connection)
            found = usage.writes(tx, route.library_id)
            if found is None or route.writes is None or found < route.writes:
                raise Behind
            return work(tx, *args, **kwargs)
        except psycopg.errors.SerializationFailure:  # what it read was vacuumed on the primary
            raise Behind from None
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            self._rest(error)
        except psycopg.Error as error:  # it may lack a table; else the primary says the same
            raise Behind from error
        finally:
            for cursor in tx.cursors if tx else ():
                cursor.close()
            with suppress(psycopg.Error):
                connection.rollback()
            self._pool.putconn(connection)

    def _rest(self, error: Exception) -> NoReturn:
        if self.answers:
            log.warning("The read replica does not answer; the primary does: %s", error)
        self._asleep_until = time.monotonic() + PAUSE_SECONDS
        raise Behind from error
