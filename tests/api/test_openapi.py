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


class Answers(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.server = support.Server(support.SOURCE / "models")
        cls.addClassCleanup(cls.server.stop)

    def ask(self, method, route, status=200, body=None, model="digits"):
        path = route.format(model=model, version="1")
        kind = {"Content-Type": "image/png"} if body else {}
        answer = self.server.ask(method, path, body, kind)
        self.assertEqual(status, answer.status, (path, answer.data))
        content, schema = json.loads(answer.data), schema_of(method, route, status)
        self.assertEqual([], faults(content, schema), path)
        return content, schema

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

    def test_other_answers(self):
        for route in ("/v2", "/v2/models/stats", "/v2/models/{model}", "/v2/models/{model}/config",
                      "/v2/models/{model}/stats", "/v2/models/{model}/versions/{version}"):
            self.ask("GET", route)
        self.ask("GET", "/v2/models/{model}", 404, model="nope")
        self.ask("POST", "/v2/repository/index")
        self.ask("POST", "/v2/models/{model}/infer", body=PICTURE.read_bytes())


if __name__ == "__main__":
    unittest.main()
