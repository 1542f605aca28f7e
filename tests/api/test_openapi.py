"""Answers of a server fit the schemas of api/http/openapi.yaml."""
import json
import pathlib
import sys
import unittest

import jsonschema
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
import support  # noqa: E402

DOCUMENT = yaml.safe_load((support.SOURCE / "api/http/openapi.yaml").read_text())
PICTURE = support.SOURCE / "models/digits/examples/three.png"


def schema_of(method, route, status):
    """The schema of an answer as JSON, beside what it refers to."""
    responses = DOCUMENT["paths"][route][method.lower()]["responses"]
    found = responses.get(str(status)) or responses["default"]
    if "$ref" in found:
        found = DOCUMENT["components"]["responses"][found["$ref"].rsplit("/", 1)[1]]
    return found["content"]["application/json"]["schema"] | {"components": DOCUMENT["components"]}


def faults(answer, schema):
    return [f"{error.json_path}: {error.message}"
            for error in jsonschema.Draft202012Validator(schema).iter_errors(answer)]


class Case(support.ServerCase):
    def ask(self, method, route, status=200, body=None, model="digits", query="", region="r"):
        path = route.format(model=model, version="1", region=region, repository="r") + query
        answer = self.server.ask(method, path, body, {})
        self.assertEqual(status, answer.status, (path, answer.data))
        content, schema = json.loads(answer.data), schema_of(method, route, status)
        self.assertEqual([], faults(content, schema), path)
        return content, schema


class Answers(Case):

    repository = support.SOURCE / "models"
    options = ("--admin-on-http",)

    def test_profile(self):
        route = "/v2/models/{model}/profile"
        answer, schema = self.ask("POST", route)
        self.ask("POST", "/v2/models/{model}/versions/{version}/profile")
        self.ask("POST", route, 404, model="nope")
        self.assertEqual(len(answer["step_ns"]), len(answer["plan"]["steps"]))
        answer["run_ns"] = -1
        del answer["plan"]["steps"][0]["kernel"]
        answer["plan"]["graph"]["nodes"][0]["inputs"] = ["x"]
        self.assertEqual(3, len(faults(answer, schema)))

    def test_every_route_that_answers_json(self):
        """But for those that have tests of their own here."""
        seen = set()
        apart = {"/v1/vision/detection", "/v1/vision/face", "/v1/vision/custom/{model}", "/console",
                 "/v2/models/{model}/profile", "/v2/models/{model}/versions/{version}/profile"}
        bodies = {"/v2/models/{model}/infer": PICTURE.read_bytes(),
                  "/v2/models/{model}/versions/{version}/infer": PICTURE.read_bytes(),
                  "/v2/logging": b'{"log_info": true}', "/v2/trace/setting": b"{}",
                  "/v2/models/{model}/trace/setting": b"{}"}
        for route, methods in DOCUMENT["paths"].items():
            for method in ("get", "post"):
                responses = methods.get(method, {}).get("responses", {})
                status = next((int(code) for code in responses if code != "default"), 501)
                found = responses.get(str(status)) or responses.get("default", {})
                if route not in apart and ("$ref" in found or "content" in found):
                    with self.subTest(route, method=method):
                        self.ask(method.upper(), route, status, bodies.get(route))
                        seen.add(route)
        self.assertGreater(len(seen), 25)

    def test_errors(self):
        self.ask("GET", "/v2/models/{model}", 404, model="nope")
        self.ask("GET", "/v2/models/{model}/ready", 400, model="nope")
        self.ask("POST", "/v2/models/{model}/infer", 400, body=b"GIF89a")
        self.ask("POST", "/v1/vision/detection", 404, body=PICTURE.read_bytes())
        self.ask("POST", "/v1/vision/custom/{model}", 404, model="nope", body=b"x")
        self.ask("POST", "/v2/logging", 400, body=b'{"log_format": "x"}')

    def test_the_schemas_refuse_others(self):
        for method, route, change in (
                ("GET", "/v2/models/{model}/stats", lambda x: x["model_stats"][0].pop("name")),
                ("GET", "/v2/models/{model}/config", lambda x: x["input"][0].update(dims=["x"])),
                ("GET", "/v2/logging", lambda x: x.pop("log_info")),
                ("GET", "/v2/trace/setting", lambda x: x.update(trace_level="OFF")),
                ("POST", "/v2/repository/index", lambda x: x[0].update(state="FINE"))):
            with self.subTest(route):
                answer, schema = self.ask(method, route)
                change(answer)
                self.assertEqual(1, len(faults(answer, schema)))


class Pictures(Case):
    """Every kind of answer of docs/objects.md."""

    @classmethod
    def prepare(cls, folder):
        for name, model, preset in (
                ("ssd", "coco_ssd_mobilenet_v1_1.0_quant", "ssd"),
                ("face", "face_detection_short_range", "mediapipe_face"),
                ("deeplab", "deeplabv3_257_float", "deeplab"), ("yamnet", "yamnet", "yamnet")):
            support.add_model(
                folder, name, support.shared(f"models/tflite/{model}.tflite"),
                config=f'parameters {{ key: "preset" value {{ string_value: "{preset}" }} }}')

    def see(self, model, file, query=""):
        return self.ask("POST", "/v2/models/{model}/infer", model=model, query=query,
                        body=support.shared(file).read_bytes())

    def test_objects(self):
        answer, schema = self.see("ssd", "images/cat_720p.jpg", "?timing=1")
        self.assertTrue(answer["objects"] and answer["time_ms"])
        answer["objects"][0]["box"].pop()
        self.assertTrue(faults(answer, schema))
        answer, _ = self.see("ssd", "images/cat_720p.jpg", "?region=0,0,9,9&region=9,9,999,600")
        self.assertEqual(2, len(answer["regions"]))
        answer, _ = self.see("face", "images/grace_hopper.bmp")
        self.assertEqual(6, len(answer["objects"][0]["keypoints"]))
        self.assertEqual(6, len(answer["keypoint_names"]))

    def test_segments(self):
        answer, _ = self.see("deeplab", "images/cat_720p.jpg", "?mask=png")
        self.assertTrue(answer["segments"] and answer["mask"])
        answer, schema = self.see("deeplab", "images/cat_720p.jpg", "?mask=rle")
        self.assertTrue(answer["segments"][0]["mask"]["counts"])
        answer["segments"][0]["area"] = 2
        self.assertTrue(faults(answer, schema))

    def test_windows(self):
        answer, _ = self.see("yamnet", "audio/speech.wav")
        self.assertTrue(answer["windows"][0]["classes"])

    def test_recorders(self):
        picture = support.shared("images/grace_hopper.bmp").read_bytes()
        for route, model in (("/v1/vision/detection", None), ("/v1/vision/face", None),
                             ("/v1/vision/custom/{model}", "ssd")):
            answer, schema = self.ask("POST", route, body=picture, model=model)
            self.assertTrue(answer["predictions"], route)
            answer["predictions"][0]["x_min"] = 0.5
            self.assertEqual(1, len(faults(answer, schema)))


if __name__ == "__main__":
    unittest.main()
