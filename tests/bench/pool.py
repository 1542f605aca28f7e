#!/usr/bin/env python3
"""How the server shares cores among requests and models. wrk sends; Python's own library only.

pool.py hints OLD NEW MODEL…    requests a second at 1 to 32 connections: OLD, an inferd that has
                                --performance-hint, with both hints, beside NEW
pool.py weights NEW MODEL       two copies of a model under load with weights 1 : 1 and 1 : 3
pool.py short NEW MODEL         a model of microseconds beside identity with a body of its size
pool.py pictures NEW MODEL JPEG CPU time of a picture over HTTP beyond the model's own
pool.py pipeline NEW MODEL JPEG from JPEG to objects with 8 clients, beside the peers of
                                ../shared/peers/pipeline.py; --python: of their environment, --task

--rounds N (5), --seconds S (1): servers take turns in each round; figures are medians of rounds.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

CONNECTIONS = (1, 2, 4, 8, 32)
PEER_SECONDS = 30 # for a peer's start
TICK = os.sysconf("SC_CLK_TCK")
BYTES = {"FP32": 4, "UINT8": 1, "INT8": 1, "INT32": 4, "FP16": 2, "INT64": 8, "BOOL": 1}
SCRIPT = """
local file = assert(io.open(os.getenv("BODY"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
file:close()
wrk.headers["Content-Type"] = os.getenv("TYPE")
if os.getenv("HEAD") ~= "" then
  wrk.headers["Inference-Header-Content-Length"] = os.getenv("HEAD")
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("FIGURES %d %.6f %.3f %d\\n", summary.requests, summary.duration / 1e6,
    latency:percentile(99) / 1000, e.connect + e.read + e.write + e.status + e.timeout))
end
"""


class Body:
    """What wrk posts."""

    def __init__(self, folder, content, kind="application/octet-stream", head=""):
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as out:
            out.write(content)
        self.path, self.kind, self.head = out.name, kind, str(head)


class Server:
    """An inferd on a free port with models in a folder of its own."""

    def __init__(self, inferd, repository, *flags):
        self.process = subprocess.Popen(
            [inferd, "serve", repository, "--http-port=0", "--metrics-port=0", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"ready at (http://127\.0\.0\.1:\d+) ", line)
        if not found:
            sys.exit(f"pool.py: {inferd} did not start: {line}")
        self.url = found[1]

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return json.load(answer)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def zeros(self, folder, model):
        """A request of binary tensors."""
        inputs, raw = [], b""
        for tensor in self.get(f"/v2/models/{model}")["inputs"]:
            shape = [max(1, dim) for dim in tensor["shape"]]
            size = BYTES[tensor["datatype"]]
            for dim in shape:
                size *= dim
            inputs.append({"name": tensor["name"], "shape": shape, "datatype": tensor["datatype"],
                           "parameters": {"binary_data_size": size}})
            raw += bytes(size)
        head = json.dumps({"inputs": inputs,
                           "parameters": {"binary_data_output": True}}).encode()
        return Body(folder, head + raw, head=len(head))

    def computed(self, model):
        """Runs so far, and their seconds."""
        stats = self.get(f"/v2/models/{model}/stats")["model_stats"][0]["inference_stats"]
        return stats["compute_infer"]["count"], stats["compute_infer"]["ns"] / 1e9


class Load:
    """wrk at work."""

    def __init__(self, folder, server, model, body, connections, seconds, query=""):
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".lua", delete=False) as out:
            out.write(SCRIPT)
        self.process = subprocess.Popen(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", out.name,
             f"{server.url}/v2/models/{model}/infer{query}"],
            stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, BODY=body.path, TYPE=body.kind, HEAD=body.head))

    def wait(self):
        """Requests, requests a second, p99 in ms."""
        out = self.process.communicate()[0]
        found = re.search(r"FIGURES (\d+) (\S+) (\S+) (\d+)", out)
        if not found or found[4] != "0":
            sys.exit(f"pool.py: requests failed:\n{out}")
        return int(found[1]), int(found[1]) / float(found[2]), float(found[3])


def repository(folder, models):
    """A folder with models: name → (file or None, config)."""
    root = tempfile.mkdtemp(dir=folder)
    for name, (file, config) in models.items():
        os.makedirs(os.path.join(root, name, "1"))
        if file:
            shutil.copy(file, os.path.join(root, name, "1", "model" + os.path.splitext(file)[1]))
        with open(os.path.join(root, name, "config.pbtxt"), "w") as out:
            out.write(config)
    return root


def middle(values):
    return statistics.median(values)


# ---- hints ----

def hints(args, folder, stack):
    print("| model | connections | latency | throughput | now | ratio "
          "| p99 ms: latency | throughput | now |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for file in args.files:
        root = repository(folder, {"net": (file, "")})
        with contextlib.ExitStack() as servers:
            started = [Server(args.old, root, "--performance-hint=latency"),
                       Server(args.old, root, "--performance-hint=throughput"),
                       Server(args.new, root)]
            for server in started:
                servers.callback(server.stop)
            body = started[0].zeros(folder, "net")
            for connections in CONNECTIONS:
                rows = [[], [], []]
                for i in range(args.rounds + 1):
                    for j in range(3):
                        k = (i + j) % 3
                        got = Load(folder, started[k], "net", body, connections,
                                   args.seconds).wait()
                        if i > 0: # the first round warms up
                            rows[k].append(got)
                rate = [middle([r[1] for r in row]) for row in rows]
                late = [middle([r[2] for r in row]) for row in rows]
                name = os.path.splitext(os.path.basename(file))[0]
                print(f"| {name} | {connections} | {rate[0]:,.0f} | {rate[1]:,.0f} "
                      f"| {rate[2]:,.0f} | {rate[2] / max(rate[:2]):.2f} "
                      f"| {late[0]:.2f} | {late[1]:.2f} "
                      f"| {late[2]:.2f} |", flush=True)


# ---- weights ----

def weights(args, folder, stack):
    config = "instance_group {{ count: {0} rate_limiter {{ priority: {1} }} }}"
    for priority in (1, 3):
        count = os.cpu_count()
        root = repository(folder, {"a": (args.file, config.format(count, 1)),
                                   "b": (args.file, config.format(count, priority))})
        server = Server(args.new, root)
        stack.callback(server.stop)
        body = server.zeros(folder, "a")
        shares = []
        for _ in range(args.rounds):
            before = [server.computed(name) for name in "ab"]
            loads = [Load(folder, server, name, body, 16, args.seconds) for name in "ab"]
            for load in loads:
                load.wait()
            after = [server.computed(name) for name in "ab"]
            runs, spent = ([y[i] - x[i] for x, y in zip(before, after)] for i in (0, 1))
            shares.append((spent[0] / spent[1], runs[0] / runs[1]))
        time_share, run_share = (middle([s[i] for s in shares]) for i in (0, 1))
        print(f"weights 1 : {priority}: time {time_share:.2f} : 1, runs {run_share:.2f} : 1",
              flush=True)


# ---- short runs ----

def short(args, folder, stack):
    probe = Server(args.new, repository(folder, {"net": (args.file, "")}))
    stack.callback(probe.stop)
    inputs = probe.get("/v2/models/net")["inputs"]
    count = 1
    for dim in inputs[0]["shape"]:
        count *= max(1, dim)
    identity = (f'backend: "identity" input {{ name: "IN" data_type: TYPE_{inputs[0]["datatype"]} '
                f'dims: [ {count} ] }} output {{ name: "OUT" '
                f'data_type: TYPE_{inputs[0]["datatype"]} dims: [ {count} ] }}')
    server = Server(args.new, repository(folder, {"net": (args.file, ""),
                                                  "same": (None, identity)}))
    stack.callback(server.stop)
    bodies = {name: server.zeros(folder, name) for name in ("net", "same")}
    for connections in (1, 8, 32, 128):
        rates = {"net": [], "same": []}
        for i in range(args.rounds + 1):
            for name in rates:
                got = Load(folder, server, name, bodies[name], connections, args.seconds).wait()
                if i > 0:
                    rates[name].append(got[1])
        net, same = middle(rates["net"]), middle(rates["same"])
        print(f"{connections} connections: {net:,.0f} requests/s, identity {same:,.0f}: "
              f"{net / same:.2f}", flush=True)


# ---- pictures ----

def frame_of(width, height):
    light = bytes((x * 7 + y * 3) % 220 + 16 for y in range(height) for x in range(width))
    return light + bytes((i * 5) % 225 + 16 for i in range(width * height // 2))


def pictures(args, folder, stack):
    server = Server(args.new, repository(folder, {"net": (args.file, "")}), "--default-threads=1")
    stack.callback(server.stop)
    with open(args.jpeg, "rb") as file:
        jpeg = file.read()
    bodies = {"tensor": server.zeros(folder, "net"), "JPEG": Body(folder, jpeg, "image/jpeg"),
              "NV12 1280x720": Body(folder, frame_of(1280, 720),
                                    "video/x-raw; format=NV12; width=1280; height=720")}
    for connections in (1, 8):
        for name, body in bodies.items():
            rows = []
            for _ in range(args.rounds):
                runs, spent = server.computed("net")
                cpu = server.cpu_seconds()
                load = Load(folder, server, "net", body, connections, args.seconds,
                            "" if name == "tensor" else "?top_k=1")
                load.wait()
                time.sleep(0.1)
                more, longer = server.computed("net")
                count = more - runs
                rows.append(((server.cpu_seconds() - cpu) / count * 1e3,
                             (longer - spent) / count * 1e3))
            cpu, model = (middle([r[i] for r in rows]) for i in (0, 1))
            print(f"{connections} connections, {name}: {cpu:.3f} ms of CPU a request, of these the "
                  f"model {model:.3f}, the rest {cpu - model:.3f}", flush=True)


# ---- beside what people build in Python ----

def frames_of(args, peer):
    """Frames a second; None if its workers end early, for which it waits without end."""
    script = os.path.join(os.path.dirname(__file__), "../../../shared/peers/pipeline.py")
    process = subprocess.Popen(
        [args.python, script, *peer, args.file, args.jpeg, "--seconds", str(args.seconds),
         "--task", args.task, "--workers", str(os.cpu_count())],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    try:
        out = process.communicate(timeout=PEER_SECONDS + args.seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    return json.loads(out.splitlines()[-1])["frames_a_second"] if process.returncode == 0 else None


def pipeline(args, folder, stack):
    peers = [(decoder, engine) for decoder in ("pillow", "opencv")
             for engine in ("litert", "openvino")]
    rates = {peer: [] for peer in peers}
    ours, broken = [], set()
    server = Server(args.new, repository(folder, {"net": (args.file, "")}))
    stack.callback(server.stop)
    with open(args.jpeg, "rb") as file:
        body = Body(folder, file.read(), "image/jpeg")
    for i in range(args.rounds):
        for peer in peers:
            if peer in broken:
                continue
            figure = frames_of(args, peer)
            if figure is None:
                broken.add(peer)
                continue
            rates[peer].append(figure)
            got = Load(folder, server, "net", body, 8, args.seconds).wait()
            ours.append(got[1])
    best = max(set(peers) - broken, key=lambda peer: middle(rates[peer]))
    for peer in peers:
        print(f"{' + '.join(peer)}: " + ("does not run this model" if peer in broken else
                                         f"{middle(rates[peer]):.0f} frames a second"))
    print(f"inferd: {middle(ours):.0f}, {middle(ours) / middle(rates[best]):.2f} times "
          f"{' + '.join(best)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for call, names in ((hints, ("old", "new")), (weights, ("new", "file")),
                        (short, ("new", "file")), (pictures, ("new", "file", "jpeg")),
                        (pipeline, ("new", "file", "jpeg"))):
        command = commands.add_parser(call.__name__)
        command.set_defaults(call=call)
        for name in names:
            command.add_argument(name)
        if call is hints:
            command.add_argument("files", nargs="+")
        command.add_argument("--rounds", type=int, default=5)
        command.add_argument("--seconds", type=int, default=1)
        if call is pipeline:
            command.add_argument("--python", default=sys.executable)
            command.add_argument("--task", default="classification")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        args.call(args, folder, stack)


if __name__ == "__main__":
    main()
