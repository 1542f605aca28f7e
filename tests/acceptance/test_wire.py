"""Replays the requests that a real Triton was asked, and compares the answers as
../shared/golden/wire/README.md says.

Every record is in exactly one group: compared with Triton's answer; compared by its own rule
(DIFFERENT: Triton is careless and inferd is not); or skipped by name with the reason (LATER). A
record in no group fails.
"""
import base64
import concurrent.futures
import gzip
import json
import re
import unittest
import zlib

import numpy as np

import support

LATER = [
    (r"sequence", "sequences"),
]

# Exact, so that no record is lost.
RECORDS_COMPARED, RECORDS_LATER = 119, 6

# Every refusal, and what its sentence must name (what, got, wanted).
NAMES = {
    "model metadata, no such version": ["simple", "9"],
    "model metadata, no such model": ["nope"],
    "model ready, no such model": ["nope"],
    "model config, no such model": ["nope"],
    "model metadata, version not a number": ["Not Found"],
    "no such route": ["Not Found"],
    "root": ["--console=false"],
    "bad: not JSON": ["JSON", "'b'", "byte 1"],
    "bad: empty body": ["JSON", "empty"],
    "bad: JSON array": ["JSON", "object"],
    "bad: inputs empty": ["simple", "INPUT0", "INPUT1"],
    "bad: one input missing": ["INPUT1"],
    "bad: unknown input": ["INPUT9"],
    "bad: input twice": ["INPUT0"],
    "bad: unknown output": ["NOPE"],
    "bad: datatype": ["INPUT0", "FP32", "INT32"],
    "bad: unknown datatype": ["INPUT0", "INT33"],
    "bad: shape": ["INPUT0", "15", "16"],
    "bad: negative shape": ["INPUT0", "-1"],
    "bad: batch above maximum": ["9", "8"],
    "bad: too few elements": ["INPUT0", "15", "16"],
    "bad: too many elements": ["INPUT0", "16"],
    "bad: no data": ["INPUT0", "data"],
    "bad: no datatype": ["datatype"],
    "bad: no shape": ["shape"],
    "bad: no name": ["name"],
    "bad: no inputs": ["inputs"],
    "bad: string in INT32": ["INPUT0", "INT32"],
    "bad: float in INT32": ["INPUT0", "INT32"],
    "bad: INT32 out of range": ["INPUT0", "INT32", "0"],
    "bad: string length beyond": ["IN", "99"],
    "load, broken config": ["failed to load 'broken'", "config.pbtxt:2"],
    "load, override is not JSON": ["failed to load 'classify'", "config:1"],
    "statistics, no such model": ["nope"],
    "shared memory register, no such region": ["shared memory"],
    "bad: binary size too small": ["INPUT0", "60", "64"],
    "bad: binary size beyond body": ["INPUT0", "54"],
    "bad: bytes left over": ["simple", "4 bytes"],
    "bad: raw body for two inputs": ["2 inputs", "simple"],
    "bad: raw body size": ["INPUT0", "identity", "multiple of 4", "6"],
    "bad: shared memory not registered": ["shared memory", "'r'"],
    "bad: unregistered shm output": ["shared memory", "'r'"],
    "metadata after unload": ["classify", "no available versions"],
    "infer after unload": ["classify", "no available versions"],
    "bad: header length beyond body": ["99999"],
    "bad: header length not a number": ["abc"],
    "bad: header length negative": ["-5"],
    "bad: gzip garbage": ["gzip"],
    "bad: reserved parameter": ["triton_x"],
    "bad: no such model": ["nope"],
    "bad: no such version": ["simple", "7"],
}

FREE = object()     # a value that may differ; its type may not


def body_of(record):
    """Triton's models ran in its Python backend, which is not here."""
    if record.get("path", "").endswith("/load"):
        return record["body"].replace("python", "tflite").encode()
    if "body_base64" in record:
        return base64.b64decode(record["body_base64"])
    return record["body"].encode()


def split(headers, data):
    """Header names in lower case, the JSON part decoded, and the binary tail."""
    headers = {k.lower(): v for k, v in headers.items()}
    encoding = headers.get("content-encoding", "identity")
    if encoding == "gzip":
        data = gzip.decompress(data)
    elif encoding == "deflate":
        data = zlib.decompress(data)
    length = int(headers.get("inference-header-content-length", len(data)))
    text = data[:length]
    return headers, json.loads(text) if text else None, data[length:]


class Wire(support.ServerCase):
    options = ("--strict-readiness=false", "--model-control-mode=explicit", "--load-model=*",
               "--admin-on-http", "--console=false")
    repository = support.REPOSITORY
    maxDiff = None

    # ---- rules of comparison

    def same(self, got, want, where="answer"):
        """The same members with the same types and values; numbers as numbers."""
        if want is FREE:
            return
        if isinstance(want, dict):
            self.assertIsInstance(got, dict, where)
            self.assertEqual(set(got), set(want), where)
            for key, value in want.items():
                self.same(got[key], value, f"{where}.{key}")
        elif isinstance(want, list):
            self.assertIsInstance(got, list, where)
            self.assertEqual(len(got), len(want), where)
            for i, value in enumerate(want):
                self.same(got[i], value, f"{where}[{i}]")
        elif isinstance(want, float):
            self.assertIn(type(got), (int, float), where)       # 1 and 1.0 are one number
            self.assertEqual(np.float32(got), np.float32(want), where)
        else:
            self.assertIs(type(got), type(want), where)
            self.assertEqual(got, want, where)

    def success(self, response, want_record, edit=lambda want: want):
        self.assertEqual(response.status, want_record["status"], response.data[:500])
        headers, got, tail = split(dict(response.getheaders()), response.data)
        want_headers, want, want_tail = split(want_record["headers"], body_of(want_record))
        for name in ("content-encoding", "content-type"):
            self.assertEqual(headers.get(name), want_headers.get(name), name)
        self.assertEqual("inference-header-content-length" in headers,
                         "inference-header-content-length" in want_headers)
        self.same(got, edit(want))
        self.assertEqual(tail, want_tail)

    def refusal(self, response, status, names):
        self.assertEqual(response.status, status, response.data[:500])
        self.assertEqual(response.getheader("Content-Type"), "application/json")
        error = json.loads(response.data)["error"]
        self.assertIsInstance(error, str)
        self.assertTrue(names)
        for name in names:
            self.assertIn(name, error)
        return error

    # ---- where the answers differ on purpose

    def health(self, response, _):
        self.assertEqual(response.status, 200)
        self.assertIs(json.loads(response.data)["live"], True)

    def ready(self, response, _):
        self.assertEqual(response.status, 200)
        self.assertIs(json.loads(response.data)["ready"], True)

    def head(self, response, _):
        self.assertEqual(response.status, 200)
        self.assertEqual(response.data, b"")

    def server_metadata(self, response, want):
        self.success(response, want, lambda w: dict(w, name=FREE, version=FREE,
                                                        extensions=FREE, may_load=True))
        ours, theirs = json.loads(response.data)["extensions"], json.loads(want["body"])[
            "extensions"]
        self.assertLessEqual({"classification", "model_configuration", "binary_tensor_data",
                              "parameters"}, set(ours))
        self.assertLessEqual({e for e in ours if not e.startswith("inferd")}, set(theirs))

    def model_metadata(self, response, want):
        self.success(response, want, lambda w: dict(w, platform=FREE))

    def config(self, response, want):
        """What clients read is there with Triton's names and types; the fields of its other
        backends are not ours."""
        self.assertEqual(response.status, 200)
        got, theirs = json.loads(response.data), json.loads(want["body"])
        for key in ("name", "max_batch_size", "version_policy"):
            self.same(got[key], theirs[key], key)
        for side in ("input", "output"):
            self.assertEqual(len(got[side]), len(theirs[side]))
            for ours, tensor in zip(got[side], theirs[side], strict=True):
                self.same({k: ours.get(k) for k in tensor if k in ours},
                          {k: v for k, v in tensor.items() if k in ours})
                needed = {"name", "data_type",
                          "dims"} | ({"format"} if side == "input" else {"label_filename"})
                self.assertLessEqual(needed, set(ours))
        self.same(got.get("dynamic_batching"), theirs.get("dynamic_batching"), "dynamic_batching")
        for key in ("platform", "backend", "default_model_filename"):
            self.assertIsInstance(got[key], str)
        self.assertEqual(got["instance_group"][0]["kind"], "KIND_CPU")

    def index(self, response, want):
        self.assertEqual(response.status, 200)
        mine = {"simple", "classify", "identity", "strings", "slow"}
        pick = lambda rows: sorted((r["name"], r["version"],
                                    r["state"]) for r in rows if r["name"] in mine)
        rows = json.loads(response.data)
        self.assertEqual(pick(rows), pick(json.loads(want["body"])))
        return rows

    def index_all(self, response, want):
        broken, = (r for r in self.index(response, want) if r["name"] == "broken")
        self.assertIn("config.pbtxt:2", broken["reason"])

    def index_ready(self, response, want):
        self.assertNotIn("broken", [r["name"] for r in self.index(response, want)])

    def index_after_unload(self, response, want):
        """Triton was still unloading; here that may be over."""
        rows = json.loads(response.data)
        classify, = (r for r in rows if r["name"] == "classify")
        self.assertIn((classify["version"], classify["state"]),
                      [("1", "UNLOADING"), ("1", "UNAVAILABLE")])
        rest = lambda rows: [r["name"] for r in rows if r["name"] not in ("classify", "sequence")]
        self.assertEqual(rest(rows), rest(json.loads(want["body"])))

    def no_such_model(self, response, _):
        """Triton: 500 for the load, 200 without effect for the unload."""
        self.assertRegex(self.refusal(response, 404, ["nope"]), "^failed to (un)?load 'nope', ")

    def statistics(self, response, want):
        """The same members for every version; counts and times are each server's own, and there
        classify was unloaded."""
        self.assertEqual(response.status, 200)
        rows, theirs = json.loads(response.data)["model_stats"], json.loads(want["body"])[
            "model_stats"]
        versions = lambda stats: [(s["name"], s["version"]) for s in stats
                                  if s["name"] not in ("sequence", "classify")]
        self.assertEqual(sorted(versions(rows)), sorted(versions(theirs)))
        members = {k for k in theirs[0] if k not in ("response_stats", "memory_usage")}
        durations = theirs[0]["inference_stats"]
        for row in rows:
            self.assertLessEqual(members, set(row))
            self.assertEqual(set(row["inference_stats"]), set(durations))
            for duration in row["inference_stats"].values():
                self.assertEqual({k: type(v) for k, v in duration.items()},
                                 {"count": int, "ns": int})
            for batch in row["batch_stats"]:
                self.assertLessEqual({"batch_size", "compute_input", "compute_infer",
                                      "compute_output"}, set(batch))

    def metrics(self, response, want):
        """Triton's inference metrics: the same words about each, and the same labels of the
        models that both serve."""
        def families(text):
            return {line for line in text.splitlines() if re.match(r"# \w+ nv_inference", line)}

        def series(text):
            lines = re.findall(r"^(nv_inference\w+)\{(.*)\} ", text, re.M)
            every = {(name, frozenset(labels.split(","))) for name, labels in lines}
            return {(name, labels) for name,
                    labels in every if not labels & {'model="sequence"', 'model="classify"'}}

        self.assertEqual(response.status, 200)
        self.assertEqual(response.getheader("Content-Type"),
                         "text/plain; version=0.0.4; charset=utf-8")
        ours, theirs = response.data.decode(), want["body"]
        self.assertLessEqual(families(theirs), families(ours))
        self.assertEqual(series(ours), series(theirs))

    def nothing(self, response, want):
        """An empty body, as Triton's."""
        self.assertEqual(response.status, 200)
        self.assertEqual(response.data, b"")

    def no_region(self, response, want):
        self.refusal(response, 501, NAMES["shared memory register, no such region"])

    def wrong_method(self, response, _):
        self.refusal(response, 405, ["Method Not Allowed"])
        self.assertIn(response.getheader("Allow"), ("GET, HEAD", "POST"))

    def encoding(self, response, _):
        self.refusal(response, 415, ["br", "gzip", "deflate"])
        self.assertEqual({e.strip() for e in response.getheader("Accept-Encoding").split(",")},
                         {"gzip", "deflate"})

    def not_a_number(self, response, _):
        """Bare NaN is not JSON: strings."""
        self.assertEqual(response.status, 200)
        data = json.loads(response.data, parse_constant=self.fail)["outputs"][0]["data"]
        self.assertEqual(data, ["NaN", "Infinity"])

    def unknown_setting(self, response, _):
        """Triton: 200 without effect."""
        self.refusal(response, 400, ["setting", "nope"])

    def overflow(self, response, _):
        self.refusal(response, 400, ["INPUT0", "exceed"])

    def trailing_slash(self, response, _):
        self.refusal(response, 404, ["Not Found"])

    DIFFERENT = {
        "server metadata": server_metadata,
        "server metadata, trailing slash": trailing_slash,
        "live": health, "ready": ready, "model ready": ready, "model ready, version": ready,
        "live by POST": wrong_method, "DELETE on infer": wrong_method, "GET on infer": wrong_method,
        "repository index by GET": wrong_method, "HEAD live": head, "OPTIONS": wrong_method,
        "model metadata": model_metadata, "model metadata, version": model_metadata,
                 "identity metadata": model_metadata,
        "model config": config, "model config, dynamic batching": config,
                 "strings metadata": model_metadata,
        "statistics": statistics, "statistics of all": statistics, "metrics": metrics,
        "shared memory unregister": nothing, "shared memory unregister all": nothing,
        "shared memory register, no such region": no_region,
        "config after override": config, "index after unload": index_after_unload,
        "load, no such model": no_such_model, "unload, no such model": no_such_model,
        "repository index": index_all, "repository index, ready only": index_ready,
        "infer NaN binary, JSON out": not_a_number,
        "infer unknown content encoding": encoding,
        "bad: shape overflow": overflow,
        "trace setting, unknown": unknown_setting, "logging, unknown": unknown_setting,
    }

    # Answered 200 or 500 by Triton although the request is the client's mistake.
    MISTAKES = {"bad: INT32 out of range"}

    def test_replay(self):
        records = json.loads(support.shared("golden/wire/triton_2.51.json").read_text())
        compared = skipped = 0
        for record in records:
            name = record["name"]
            reason = next((why for pattern, why in LATER if re.search(pattern, name)), None)
            if reason:
                print(f"later: {name} ({reason})")
                skipped += 1
                continue
            if "responses" in record:                           # has a test of its own below
                compared += 1
                continue
            request, want = record["request"], record["response"]
            with self.subTest(name):
                address = self.server.metrics_address if request.get("port") == "metrics" else None
                response = self.server.ask(request["method"], request["path"], body_of(request),
                                           request["headers"], address)
                if name in self.DIFFERENT:
                    self.DIFFERENT[name](self, response, want)
                elif name in self.MISTAKES or want["status"] == 500:
                    self.refusal(response, 400, NAMES[name])
                elif want["status"] == 200:
                    self.success(response, want)
                else:
                    self.refusal(response, want["status"], NAMES[name])
            compared += 1
        print(f"{compared} compared, {skipped} left for later, of {len(records)}")
        self.assertEqual((compared, skipped), (RECORDS_COMPARED, RECORDS_LATER))
        self.assertEqual(self.server.ask("GET", "/v2/health/live").status, 200)


    def test_full_queue_and_timeout_are_told_and_may_be_retried(self):
        record, = (r for r in json.loads(
            support.shared("golden/wire/triton_2.51.json").read_text()) if "responses" in r)
        request = record["request"]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: self.server.ask(request["method"], request["path"],
                                                              body_of(request),
                                                              request["headers"]), range(16)))
        self.assertEqual({a.status for a in answers}, {r["status"] for r in record["responses"]})
        for answer in answers:
            if answer.status == 200:
                self.assertEqual(json.loads(answer.data)["outputs"][0]["data"], [1.0])
            else:
                is_late = b"expired" in answer.data
                self.refusal(answer, 503, ["Request timeout expired"] if is_late
                             else ["queue is full", "2 requests wait"])
                self.assertTrue(answer.getheader("Retry-After"))


if __name__ == "__main__":
    unittest.main()
