"""`python -m torture.prober ADDRESS PID`: ask for /healthz until told to stop.

Prints a line for each answer: the seconds it took, and the server's memory in MB. It is a process
of its own, so that what the harness computes is not measured. Every second question comes on a new
connection, as those of an orchestrator do.
"""

import http.client
import itertools
import sys
import time
from urllib.parse import urlsplit

import psutil

EVERY_SECONDS = 0.05
LONGEST = 30.0  # also for a wrong answer


def ask(connection: http.client.HTTPConnection) -> bool:
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return False
    return answer.status == 200


def main(address: str, pid: int) -> None:
    host, port = urlsplit(address).hostname or "", urlsplit(address).port
    server = psutil.Process(pid)
    kept = http.client.HTTPConnection(host, port, timeout=LONGEST)
    for number in itertools.count():
        fresh = http.client.HTTPConnection(host, port, timeout=LONGEST)
        connection = fresh if number % 2 else kept
        began = time.monotonic()
        # A kept connection may have been closed meanwhile, which is no fault: it is opened again.
        answered = ask(connection) or (connection is kept and ask(kept))
        took = time.monotonic() - began if answered else LONGEST
        fresh.close()
        try:
            memory = server.memory_info().rss / 1e6
        except psutil.Error:
            return
        print(f"{took:.4f} {memory:.1f}", flush=True)
        time.sleep(EVERY_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
