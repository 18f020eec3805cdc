"""`python -m torture.prober ADDRESS PID`: ask for /healthz until told to stop.

Prints a line for each answer: the seconds it took, and the server's memory in MB. It is a process
of its own, so that what the harness computes is not measured.
"""

import http.client
import sys
import time
from urllib.parse import urlsplit

import psutil

EVERY_SECONDS = 0.05
LONGEST = 30.0


def main(address: str, pid: int) -> None:
    host, port = urlsplit(address).hostname or "", urlsplit(address).port
    server = psutil.Process(pid)
    connection: http.client.HTTPConnection | None = None
    while True:
        began = time.monotonic()
        for _ in range(2):  # a kept connection may have been closed meanwhile, which is no fault
            try:
                connection = connection or http.client.HTTPConnection(host, port, timeout=LONGEST)
                connection.request("GET", "/healthz")
                answer = connection.getresponse()
                answer.read()
                break
            except (OSError, http.client.HTTPException):
                connection = None
        took = time.monotonic() - began if connection and answer.status == 200 else LONGEST
        try:
            memory = server.memory_info().rss / 1e6
        except psutil.Error:
            return
        print(f"{took:.4f} {memory:.1f}", flush=True)
        time.sleep(EVERY_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
