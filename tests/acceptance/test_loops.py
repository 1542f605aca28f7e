"""A loop that a request makes long ends when nobody waits for it, and at the time that its request
sets; the server answers others meanwhile."""

import http.client
import json
import socket
import time

import onnx
from onnx import TensorProto, helper

import support
from test_metrics import scrape

FOREVER = 2**62
HOUR_US = 3600 * 10**6


def counter():
    """A model: x and one more for each turn."""
    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph(
        [helper.make_node("Add", ["at", "one"], ["next"]),
         helper.make_node("Identity", ["go"], ["goes"])], "body",
        [value("turn", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
         value("at", TensorProto.FLOAT, [1])],
        [value("goes", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [1])],
        [helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)], "counter",
        [value("turns", TensorProto.INT64, []), value("x", TensorProto.FLOAT, [1])],
        [value("y", TensorProto.FLOAT, [1])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def halves(turns):
    """A model whose requests share runs: x and a half for each turn of a loop of constants."""
    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph(
        [helper.make_node("Mul", ["at", "half"], ["next"]),
         helper.make_node("Identity", ["go"], ["goes"])], "body",
        [value("turn", TensorProto.INT64, []), value("go", TensorProto.BOOL, []),
         value("at", TensorProto.FLOAT, [1])],
        [value("goes", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [1])],
        [helper.make_tensor("half", TensorProto.FLOAT, [1], [0.5])])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["turns", "", "one"], ["part"], body=body),
         helper.make_node("Add", ["x", "part"], ["y"])], "halves",
        [value("x", TensorProto.FLOAT, ["n", 1])], [value("y", TensorProto.FLOAT, ["n", 1])],
        [helper.make_tensor("turns", TensorProto.INT64, [], [turns]),
         helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Loops(support.ServerCase):
    @classmethod
    def prepare(cls, folder):
        path = f"{folder}/model.onnx"
        onnx.save(counter(), path)
        support.add_model(folder, "counter", path, config="instance_group { count: 1 }")
        onnx.save(halves(2**18), path)
        support.add_model(folder, "halves", path, config="max_batch_size: 2 dynamic_batching { "
                          "max_queue_delay_microseconds: 10000000 preferred_batch_size: 2 "
                          "default_queue_policy { allow_timeout_override: true } } "
                          "instance_group { count: 2 }")

    @staticmethod
    def body(turns, **parameters):
        return json.dumps({"parameters": parameters, "inputs": [
            {"name": "turns", "shape": [], "datatype": "INT64", "data": [turns]},
            {"name": "x", "shape": [1], "datatype": "FP32", "data": [0.5]}]}).encode()

    def ask(self, turns, **parameters):
        answer = self.server.ask("POST", "/v2/models/counter/infer", self.body(turns, **parameters))
        return answer.status, json.loads(answer.data)

    def expect_service(self):
        for turns in (3, 0, 1000): # short runs: the next ones may come at any place
            status, answer = self.ask(turns, timeout=HOUR_US)
            self.assertEqual((status, answer["outputs"][0]["data"]), (200, [turns + 0.5]))

    def metric(self, name, label=""):
        return scrape(self.server)[0][f'{name}{{model="counter",version="1"{label}}}']

    def post(self, model, body):
        """Sends a request; returns its connection."""
        host, port = self.server.address.split(":")
        client = socket.create_connection((host, int(port)), support.ANSWER_SECONDS)
        self.addCleanup(client.close)
        client.sendall(b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                       b"Content-Length: %d\r\n\r\n" % (model.encode(), len(body)) + body)
        return client

    def cancelled(self):
        return self.metric("nv_inference_request_failure", ',reason="CANCELED"')

    def test_a_client_that_leaves_ends_its_loop(self):
        self.expect_service()
        before = self.cancelled()
        client = self.post("counter", self.body(FOREVER, timeout=HOUR_US))
        while not (self.metric("inferd_requests_inflight") == 1
                   and self.metric("inferd_queue_requests") == 0):
            time.sleep(0.01) # until it runs
        client.close()
        self.expect_service()
        self.assertEqual(self.cancelled(), before + 1)

    def test_a_timeout_ends_a_loop(self):
        self.expect_service()
        status, answer = self.ask(FOREVER, timeout=200000)
        self.assertEqual(status, 503)
        self.assertRegex(answer["error"], r"a loop has made \d+ turns when its time is over")
        self.expect_service()

    def test_a_timeout_is_of_one_request_alone(self):
        """Requests of this model share runs, but for those whose timeouts may end their loops."""
        def body(timeout):
            return json.dumps({"parameters": {"timeout": timeout}, "inputs": [
                {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [2]}]}).encode()
        for timeouts in ((HOUR_US, 10000), (10000, HOUR_US)):
            answers = {}
            clients = [self.post("halves", body(timeout)) for timeout in timeouts]
            for timeout, client in zip(timeouts, clients):
                response = http.client.HTTPResponse(client)
                response.begin()
                answers[timeout] = response.status, json.loads(response.read())
            status, answer = answers[HOUR_US]
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["outputs"][0]["data"], [2])
            status, answer = answers[10000]
            self.assertEqual(status, 503, answer)
            self.assertRegex(answer["error"], "its time is over|timeout expired")
