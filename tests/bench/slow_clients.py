#!/usr/bin/env python3
"""What a thousand slow clients cost a good one: slow_clients.py build/bin/inferd [KIND ...]

For each kind of slow client: latency of one good client on one connection, alone and beside them,
in turns; memory of the server for each slow client; and after how long the last of them was cut
off."""
import multiprocessing
import pathlib
import re
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HEADER = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n"
BODY = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{"
CONFIG = ('backend: "identity" input { name: "IN" data_type: TYPE_FP32 dims: -1 } '
          'output { name: "OUT" data_type: TYPE_FP32 dims: -1 }')
CLIENTS = 1000
SECONDS = 0.7       # of measuring, alone and beside the slow clients
SETTLE_SECONDS = 2  # until what they send at first was taken
TURNS = 3


def binary_request(floats):
    head = (
        b'{"inputs":[{"name":"IN","shape":[%d],"datatype":"FP32",'
        b'"parameters":{"binary_data_size":%d}}],'
        b'"parameters":{"binary_data_output":true}}' % (floats, floats * 4))
    return (b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n"
            b"Inference-Header-Content-Length: %d\r\n\r\n" %
            (len(head) + floats * 4, len(head))) + head + bytes(floats * 4)


# What each kind sends first, and whether it then sends or reads a byte at a time.
KINDS = {"silent": (b"", None), "header": (HEADER, "send"), "body": (BODY, "send"),
         "read": (binary_request(1 << 16), "read")}


def attack(port, kind, count, ready, go_on):
    """Opens the connections, says so, and drips until told to stop; tells after how many seconds
    the last was ended."""
    first, then = KINDS[kind]
    clients = []
    for _ in range(count):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", port))
        client.sendall(first)
        clients.append(client)
    start = time.monotonic()
    ready.set()
    poll = select.poll()
    for client in clients:
        poll.register(client, select.POLLRDHUP)
    open_clients = {client.fileno(): client for client in clients}
    while open_clients and go_on.is_set():
        for number, _ in poll.poll(0):
            poll.unregister(number)
            open_clients.pop(number).close()
        for client in open_clients.values():
            try:
                if then == "send":
                    client.send(b"x", socket.MSG_DONTWAIT)
                elif then == "read":
                    client.recv(1, socket.MSG_DONTWAIT)
            except OSError:
                pass
        time.sleep(0.5)
    return (time.monotonic() - start) if not open_clients else None


def run_attack(port, kind, count, ready, go_on, result):
    result.put(attack(port, kind, count, ready, go_on))


def latencies(port, seconds):
    """Of a good client, in microseconds, sorted."""
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request, times = binary_request(16), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        client.sendall(request)
        answer = client.recv(4096)
        times.append((time.perf_counter() - start) * 1e6)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
    client.close()
    return sorted(times)


def resident(process):
    return int(
        re.search(r"VmRSS:\s+(\d+) kB",
                  pathlib.Path(f"/proc/{process.pid}/status").read_text())[1])


def measure(process, port, kind, count=CLIENTS, seconds=SECONDS):
    ratios50, ratios99 = [], []
    before = resident(process)
    for turn in range(TURNS):
        alone = latencies(port, seconds)
        ready, go_on, result = multiprocessing.Event(), multiprocessing.Event(
        ), multiprocessing.Queue()
        go_on.set()
        attacker = multiprocessing.Process(target=run_attack,
                                           args=(port, kind, count, ready, go_on, result))
        attacker.start()
        ready.wait()
        time.sleep(SETTLE_SECONDS)
        latencies(port, 0.01)
        if turn == 0:
            memory = (resident(process) - before) * 1024 / count
        beside = latencies(port, seconds)
        if turn < TURNS - 1:
            go_on.clear()
        ended = result.get()
        attacker.join()
        ratios50.append(beside[len(beside) // 2] / alone[len(alone) // 2])
        ratios99.append(beside[len(beside) * 99 // 100] / alone[len(alone) * 99 // 100])
    print(
        f"| {kind} | {alone[len(alone) // 2]:.0f} | {alone[len(alone) * 99 // 100]:.0f} | "
        f"{statistics.median(ratios50):.2f} | {statistics.median(ratios99):.2f} | {memory:.0f} "
        f"| {ended:.1f} |",
        flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "echo").mkdir()
        (pathlib.Path(folder) / "echo/config.pbtxt").write_text(CONFIG)
        process = subprocess.Popen(
            [sys.argv[1], "serve", folder, "--http-port=0", "--metrics-port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True)
        for line in process.stdout:
            ready = re.search(r"ready at http://127\.0\.0\.1:(\d+)", line)
            if ready:
                break
        print(
            f"{CLIENTS} slow clients. Good client: µs alone; ratio beside them, "
            f"median of {TURNS} turns\n\n"
            "| kind | p50 | p99 | p50 ratio | p99 ratio | bytes each | last ended, s |\n"
            "|---|---|---|---|---|---|---|"
        )
        for kind in sys.argv[2:] or KINDS:
            measure(process, int(ready[1]), kind)
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
