"""deploy/k8s: every manifest fits its schema, without a field that the schema does not know; names
that belong together are the same; the arguments of its containers, and of deploy/compose.yaml,
start a server.

tests/run.sh gets the schemas by schemas.sh."""
import copy
import functools
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
import support  # noqa: E402

COMPOSE = support.SOURCE / "deploy/compose.yaml"
MANIFESTS = support.SOURCE / "deploy/k8s"
SCHEMAS = support.SOURCE / "build/schemas"
SKIPPED = 77


def objects(name):
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


ALL = ("inferd.yaml", "scaling.yaml", "kserve.yaml")


@functools.cache
def definitions():
    return json.loads((SCHEMAS / "swagger.json").read_text())["definitions"]


@functools.cache
def schemas():
    """The schema of each (apiVersion, kind)."""
    if not (SCHEMAS / "complete").exists():
        support.skip(f"{SCHEMAS} is not here; tests/run.sh makes it")
    found = {}
    for definition in definitions().values():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            group = kind["group"] + "/" if kind["group"] else ""
            found[group + kind["version"], kind["kind"]] = definition
    for path in SCHEMAS.glob("*.yaml"):
        crd = yaml.safe_load(path.read_text())["spec"]
        for version in crd["versions"]:
            found[f"{crd['group']}/{version['name']}", crd["names"]["kind"]] = \
                version["schema"]["openAPIV3Schema"]
    return found


TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list,
         "object": dict}


def faults(value, schema, path=""):
    """What is wrong with a value, by its place."""
    while "$ref" in schema:
        schema = definitions()[schema["$ref"].rsplit("/", 1)[1]]
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string" or \
            schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    kind = schema.get("type", "object")
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{path}: got {value!r}, wanted a {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: got {value!r}, wanted one of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: got {value!r}, wanted {schema['pattern']}"
    if kind == "array":
        for i, item in enumerate(value):
            yield from faults(item, schema["items"], f"{path}[{i}]")
    if kind == "object":
        known, others = schema.get("properties"), schema.get("additionalProperties")
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{path}.{name}: missing"
        for name, item in value.items():
            if known and name in known:
                yield from faults(item, known[name], f"{path}.{name}")
            elif isinstance(others, dict):
                yield from faults(item, others, f"{path}.{name}")
            elif known is not None:
                yield f"{path}.{name}: unknown"


def faults_of(manifest):
    schema = schemas()[manifest["apiVersion"], manifest["kind"]]
    found = list(faults({k: v for k, v in manifest.items() if k != "metadata"}, schema))
    meta = definitions()["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    return found + list(faults(manifest["metadata"], meta, ".metadata"))


class Manifests(unittest.TestCase):

    def test_every_manifest_fits_its_schema(self):
        kinds = set()
        for name in ALL:
            for manifest in objects(name):
                kinds.add(manifest["kind"])
                self.assertEqual([], faults_of(manifest), (name, manifest["kind"]))
        self.assertEqual({"Deployment", "Service", "PodDisruptionBudget", "ServiceMonitor",
                          "HorizontalPodAutoscaler", "ServingRuntime", "InferenceService"}, kinds)

    def test_a_mistake_does_not_fit(self):
        for name in ALL:
            for manifest in objects(name):
                wrong = copy.deepcopy(manifest)
                wrong["spec"]["replicaz"] = 2
                self.assertEqual([".spec.replicaz: unknown"], faults_of(wrong), manifest["kind"])
                wrong = copy.deepcopy(manifest)
                wrong["metadata"]["labels"] = {"app": 1}
                self.assertEqual(1, len(faults_of(wrong)), manifest["kind"])
        wrong = objects("inferd.yaml")[0]
        wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
        del wrong["spec"]["selector"]
        self.assertEqual([".spec.selector: missing",
                          ".spec.template.spec.containers[0].readinesProbe: unknown"],
                         faults_of(wrong))
        wrong = objects("kserve.yaml")[0]
        wrong["spec"]["containers"][0]["args"] = "serve"
        wrong["spec"]["supportedModelFormats"][0]["autoselect"] = True
        self.assertEqual(2, len(faults_of(wrong)))

    def test_arguments_start_a_server(self):
        containers = [objects("inferd.yaml")[0]["spec"]["template"]["spec"]["containers"][0],
                      objects("kserve.yaml")[0]["spec"]["containers"][0],
                      yaml.safe_load(COMPOSE.read_text())["services"]["inferd"]]
        for container in containers:
            arguments = container.get("args") or container["command"]
            self.assertEqual("serve", arguments[0])
            with self.subTest(arguments), tempfile.TemporaryDirectory() as folder:
                models = pathlib.Path(folder, "models")
                shutil.copytree(support.SOURCE / "models/digits", models / "digits")
                options = [a.replace("/var/cache/inferd", folder).replace("/run/inferd", folder)
                           for a in arguments[2:]
                           if not a.startswith(("--http-address", "--http-port"))]
                server = support.Server(models, *options)
                try:
                    self.assertEqual(200, server.ask("GET", "/v2/models/digits/ready").status)
                    # the paths of the probes
                    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                        if probe in container:
                            path = container[probe]["httpGet"]["path"]
                            self.assertEqual(200, server.ask("GET", path).status)
                finally:
                    server.stop()

    def test_ports_and_labels_that_belong_together_are_the_same(self):
        deployment, service, budget = objects("inferd.yaml")
        scaler, monitor = objects("scaling.yaml")
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for selector in (deployment["spec"]["selector"]["matchLabels"], service["spec"]["selector"],
                         budget["spec"]["selector"]["matchLabels"]):
            self.assertEqual(labels, selector)
        self.assertEqual(service["metadata"]["labels"],
                         monitor["spec"]["selector"]["matchLabels"])
        pod = deployment["spec"]["template"]["spec"]
        ports = {port["name"] for port in pod["containers"][0]["ports"]}
        self.assertEqual(ports, {port["targetPort"] for port in service["spec"]["ports"]})
        self.assertIn(monitor["spec"]["endpoints"][0]["port"],
                      {port["name"] for port in service["spec"]["ports"]})
        self.assertEqual(deployment["metadata"]["name"], scaler["spec"]["scaleTargetRef"]["name"])
        metric = scaler["spec"]["metrics"][0]["pods"]["metric"]["name"]
        rules = objects("adapter.yaml")[0]["rules"]
        self.assertEqual([metric], [rule["name"]["as"] for rule in rules])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
