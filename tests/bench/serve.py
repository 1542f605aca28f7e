#!/usr/bin/env python3
"""What tests/bench/serve.sh measures besides the harness of the peers. Python's own library only.

serve.py ratios RESULTS
    inferd beside the best of Triton's thread counts, from measure.py's lines
serve.py own INFERD MODELS FILE DIR
    size, start with the models of MODELS, idle memory; with the model of FILE (MobileNetV2 uint8,
    "": left out) latency added to the engine's time, and overload
"""
import json
import os
import re
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import time

SHAPE = [1, 224, 224, 3]
QUEUE = 8  # waiting requests in the overload run
OVERLOAD = 5
PAIRS = 7  # of runs at the peak and beyond it
PAIR_SECONDS = 2


# ---- ratios ----

def median_of(rows, key):
    return statistics.median(row[key] for row in rows)


def ratios(path):
    groups = {}
    with open(path) as file:
        for line in file:
            row = json.loads(line)
            groups.setdefault((row["model"], row["body"], row["connections"]),
                              {}).setdefault(row["label"], []).append(row)
    print(
        "\n| against Triton's best | body | connections | req/s, times "
        "| CPU a request, share | p99, share |"
    )
    print("|---|---|---:|---:|---:|---:|")
    for (model, body, connections), labels in groups.items():
        tritons = [
            rows for label, rows in labels.items()
            if label.startswith("Triton, ") and label.endswith(("thread", "threads"))
        ]
        if not tritons:
            continue
        rate = max(median_of(rows, "req_s") for rows in tritons)
        cpu = min(median_of(rows, "cpu_us") for rows in tritons)
        p99 = min(median_of(rows, "p99_ms") for rows in tritons)
        for label, rows in labels.items():
            if label.startswith("inferd"):
                print(
                    f"| {label}: {model} | {body} | {connections} "
                    f"| {median_of(rows, 'req_s') / rate:.2f} "
                    f"| {median_of(rows, 'cpu_us') / cpu:.2f} "
                    f"| {median_of(rows, 'p99_ms') / p99:.2f} |"
                )
    nginx = groups.get(("-", "-", 1), {}).get("nginx")
    for label, rows in groups.get(("identity", "floats16.bin", 1), {}).items():
        if nginx and label.startswith("inferd"):
            added = (median_of(rows, "p50_ms") - median_of(nginx, "p50_ms")) * 1000
            print(f"\np50 at one connection, {label}: {added:+.0f} µs against nginx")


# ---- a server of our own ----

class Server:
    """An inferd on free ports; ready_s: from exec to the line that says so."""

    def __init__(self, inferd, repository, *flags):
        start = time.monotonic()
        self.process = subprocess.Popen(
            [inferd, "serve", repository, "--http-port=0", "--metrics-port=0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True)
        line = self.process.stdout.readline()
        self.ready_s = time.monotonic() - start
        found = re.search(r"ready at http://127\.0\.0\.1:(\d+) ", line)
        if not found:
            sys.exit(f"serve.py: inferd did not start: {line}")
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def rss_mb(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def picture_request():
    raw = bytes((i * 31 + i // 672) % 256 for i in range(224 * 224 * 3))
    head = json.dumps({"inputs": [{"name": "input", "shape": SHAPE, "datatype": "UINT8",
                                   "parameters": {"binary_data_size": len(raw)}}],
                       "parameters": {"binary_data_output": True}}, separators=(",", ":")).encode()
    lines = [
        "POST /v2/models/mobilenet_v2/infer HTTP/1.1", "Host: bench",
        "Content-Type: application/octet-stream", f"Inference-Header-Content-Length: {len(head)}",
        f"Content-Length: {len(head) + len(raw)}"
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + head + raw


class Connection:
    """A keep-alive connection with one request at a time, never blocking."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.out, self.answer, self.due = memoryview(b""), b"", 0.0

    def send(self, request, due):
        self.out, self.answer, self.due = memoryview(request), b"", due
        self.push()

    def push(self):
        try:
            while self.out:
                self.out = self.out[self.socket.send(self.out):]
        except BlockingIOError:
            pass

    def pull(self):
        """The status once the answer is complete, else None."""
        try:
            part = self.socket.recv(1 << 16)
        except BlockingIOError:
            return None
        if not part:
            sys.exit("serve.py: the server closed a connection")
        self.answer += part
        head, end, body = self.answer.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head) if end else None
        return int(head[9:12]) if length and len(body) >= int(length[1]) else None


def offer(port, request, connections, rate, seconds):
    """Sends rate requests a second at even intervals (0: a closed loop), each on a connection that
    is free, of a limited number. Latencies, counted from the moment a request was due: [answered],
    [refused]; and how many found none free."""
    selector = selectors.DefaultSelector()
    free, lost, taken = [], 0, ([], [])
    for _ in range(connections):
        connection = Connection(port)
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        free.append(connection)
    start = now = time.monotonic()
    sent, open_count = 0, 0
    while now < start + seconds or open_count:
        while now < start + seconds and (free if rate == 0 else start + sent / rate <= now):
            due = now if rate == 0 else start + sent / rate
            sent += 1
            if not free:
                lost += 1
                continue
            connection = free.pop()
            connection.send(request, due)
            open_count += 1
            if connection.out:
                selector.modify(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE,
                                connection)
        wait = 0.1 if rate == 0 or now >= start + seconds else max(0.0, start + sent / rate - now)
        for key, events in selector.select(wait):
            connection = key.data
            if events & selectors.EVENT_WRITE:
                connection.push()
                if not connection.out:
                    selector.modify(connection.socket, selectors.EVENT_READ, connection)
            status = connection.pull() if events & selectors.EVENT_READ else None
            if status:
                taken[status != 200].append(time.monotonic() - connection.due)
                open_count -= 1
                free.append(connection)
        now = time.monotonic()
    return taken[0], taken[1], lost


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000 if values else 0.0


def repository_of(file, folder, config):
    repository = os.path.join(folder, "own-repo")
    shutil.rmtree(repository, ignore_errors=True)
    os.makedirs(os.path.join(repository, "mobilenet_v2", "1"))
    shutil.copy(file, os.path.join(repository, "mobilenet_v2", "1", "model.tflite"))
    with open(os.path.join(repository, "mobilenet_v2", "config.pbtxt"), "w") as out:
        out.write(config)
    return repository


def added_latency(inferd, file, folder):
    """What one_client waits beyond the time that the engine took for that very request, as the
    statistics tell it; and what the system alone takes for the same bytes."""
    program = os.path.join(os.path.dirname(inferd), "..", "tests", "one_client")
    if not os.path.exists(program):
        print("\nadded latency left out: tests/one_client is not built")
        return
    head, body = picture_request().split(b"\r\n\r\n", 1)
    header_bytes = re.search(rb"Inference-Header-Content-Length: (\d+)", head)[1].decode()
    path = os.path.join(folder, "picture.bin")
    with open(path, "wb") as out:
        out.write(body)
    one, none = "--default-threads=1", "--spin-us=0"
    # a client that spins has a core of its own: not where an instance wants all of them
    for client, settings in (([], [[one], [one, none], []]), (["--spin"], [[one], [one, none]])):
        print(
            "\nMobileNetV2, 150 kB tensor, 1 connection, "
            f"a client that {'spins' if client else 'sleeps'}:",
            flush=True)
        for flags in settings:
            with Server(inferd, repository_of(file, folder, ""), *flags) as server:
                print(" ".join(flags) or "as it comes", flush=True)
                subprocess.run(
                    [program,
                     str(server.port), "mobilenet_v2", path, header_bytes, *client],
                    check=True)
        print("floor: a program that reads, works on memory for 1.4 ms, answers", flush=True)
        subprocess.run([program, "floor", "1001", path, header_bytes, "--work-us", "1400", *client],
                       check=True)


def overload(inferd, file, folder):
    """Each overload beside a peak measured just before it: a host's speed swings by more than what
    is to be seen."""
    request = picture_request()
    config = (f"dynamic_batching {{ default_queue_policy {{ max_queue_size: {QUEUE} }} }}\n"
              "max_batch_size: 1\ninstance_group { count: 1 }\n")
    with Server(inferd, repository_of(file, folder, config), "--default-threads=1") as server:
        offer(server.port, request, QUEUE, 0, 0.5)
        pairs = [overload_pair(server.port, request) for _ in range(PAIRS)]
    print(
        f"\nOverload, {PAIRS} pairs of {PAIR_SECONDS} s, peak (closed loop of {QUEUE}) "
        f"and {OVERLOAD} times as much (open loop); "
        "median, least and most:")
    for what, values in zip(OVERLOAD_ROWS, zip(*pairs)):
        print(f"{what}: {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")


OVERLOAD_ROWS = [
    "peak, requests/s", "p99 at the peak, ms", "answered of the peak, %",
    "p99 of these, times that at the peak", "refused, requests/s", "p50 of a refusal, ms",
    "p99 of a refusal, ms", "not sent, no connection was free"
]


def overload_pair(port, request):
    good, _, _ = offer(port, request, QUEUE, 0, PAIR_SECONDS)
    peak, peak_p99 = len(good) / PAIR_SECONDS, quantile(good, 0.99)
    good, refused, lost = offer(port, request, 256, peak * OVERLOAD, PAIR_SECONDS)
    return (peak, peak_p99, len(good) / PAIR_SECONDS / peak * 100, quantile(good, 0.99) / peak_p99,
            len(refused) / PAIR_SECONDS, quantile(refused, 0.5), quantile(refused, 0.99), lost)


def own(inferd, models, file, folder):
    stripped = os.path.join(folder, "inferd.stripped")
    subprocess.run(["strip", "-o", stripped, inferd], check=True)
    starts = []
    for _ in range(11):
        with Server(inferd, models) as server:
            starts.append(server.ready_s)
            time.sleep(0.2)
            idle = server.rss_mb()
    print(
        f"\nStripped: {os.path.getsize(stripped) / 1e6:.2f} MB. "
        f"With {models}: ready {statistics.median(starts) * 1000:.1f} ms "
        f"after the start (median of {len(starts)}), {idle:.1f} MB resident when idle")
    if file:
        added_latency(inferd, file, folder)
        overload(inferd, file, folder)


def main(args):
    if len(args) == 2 and args[0] == "ratios":
        ratios(args[1])
    elif len(args) == 5 and args[0] == "own":
        own(*args[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
