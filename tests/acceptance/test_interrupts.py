"""System calls that are interrupted or do a part of their work, a server that stands still:
every answer is exact to the byte."""
import json
import pathlib
import random
import shutil
import signal
import socket
import struct
import tempfile
import time
import unittest

import support

CONFIG = ('backend: "identity" input { name: "IN" data_type: TYPE_UINT8 dims: -1 } '
          'output { name: "OUT" data_type: TYPE_UINT8 dims: -1 }')

# Some of these calls fail without effect: the n-th, and then every m-th (when=n+m).
INTERRUPTS = [
    "recvfrom:error=EINTR:when=2+3",
    "sendto:error=EINTR:when=3+3",
    "sendmsg:error=EINTR:when=2+3",
    "writev:error=EINTR:when=2+4",
    "epoll_wait:error=EINTR:when=3+4",
    "epoll_pwait:error=EINTR:when=3+4",
    "accept4:error=ECONNABORTED:when=2+3",
]


def request(data):
    """An inference whose answer is its own input."""
    head = json.dumps({
        "inputs": [{"name": "IN", "shape": [len(data)], "datatype": "UINT8",
                    "parameters": {"binary_data_size": len(data)}}],
        "parameters": {"binary_data_output": True}}).encode()
    return (b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n"
            b"Inference-Header-Content-Length: %d\r\n\r\n" % (len(head) + len(data),
                                                              len(head))) + head + data


def read_exactly(stream, size):
    data = stream.read(size)
    if len(data) != size:
        raise EOFError(f"{len(data)} bytes of {size}")
    return data


def read_tensor(stream):
    """The tensor of one answer."""
    status = stream.readline()
    fields = {}
    for line in iter(stream.readline, b"\r\n"):
        name, _, value = line.decode().partition(":")
        fields[name.lower()] = value.strip()
    body = read_exactly(stream, int(fields["content-length"]))
    if status != b"HTTP/1.1 200 OK\r\n":
        raise AssertionError(f"{status!r}: {body[:200]!r}")
    return body[int(fields["inference-header-content-length"]):]


class Interrupts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "echo").mkdir()
        (self.folder / "echo/config.pbtxt").write_text(CONFIG)
        self.random = random.Random(7)

    def serve(self, prefix=(), options=()):
        self.server = support.Server(self.folder, *options, prefix=prefix)
        self.addCleanup(self.server.stop)

    def connect(self, buffer_bytes=None):
        connection = socket.socket()
        if buffer_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        connection.settimeout(support.ANSWER_SECONDS)
        host, port = self.server.address.split(":")
        connection.connect((host, int(port)))
        self.addCleanup(connection.close)
        return connection

    def check_exchanges(self, count, largest):
        connection = None
        for i in range(count):
            if i % 8 == 0:
                connection = self.connect()
                stream = connection.makefile("rb")
            data = self.random.randbytes(self.random.randrange(1, largest))
            connection.sendall(request(data))
            self.assertEqual(read_tensor(stream), data)

    def test_interrupted_calls_change_no_answer(self):
        self.serve(support.tracer(*INTERRUPTS))
        self.check_exchanges(120, 200000)

    def test_requests_that_come_in_pieces_are_read_as_one(self):
        self.serve()
        connection = self.connect()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = connection.makefile("rb")
        for size in (1, 100, 5000):
            data = self.random.randbytes(size)
            text = request(data)
            while text:
                piece = self.random.randrange(1, 4 if size < 5000 else 400)
                connection.sendall(text[:piece])
                text = text[piece:]
            self.assertEqual(read_tensor(stream), data)

    def test_answers_that_are_taken_in_pieces_arrive_whole(self):
        self.serve()
        connection = self.connect(buffer_bytes=2048)
        data = self.random.randbytes(3000000)
        connection.sendall(request(data))
        got = bytearray()
        while b"\r\n\r\n" not in got or len(got) < len(data):
            got += connection.recv(self.random.randrange(1, 60000))
        self.assertEqual(bytes(got[-len(data):]), data)

    def test_clients_are_not_blamed_for_a_server_that_stands_still(self):
        self.serve(options=("--http-header-timeout-secs=3", "--http-receive-timeout-secs=3"))
        data = b"from before"
        text = request(data)
        rest = {}
        for size in (0, 20, len(text) - 5):     # nothing, a part of the header, a part of the body
            connection = self.connect()
            connection.sendall(text[:size])
            rest[connection] = text[size:]
        self.check_exchanges(1, 10)             # by now the server has seen them
        self.server.process.send_signal(signal.SIGSTOP)
        for connection, left in rest.items():
            connection.sendall(left)
        time.sleep(6)                           # beyond every deadline, that of the rate included
        self.server.process.send_signal(signal.SIGCONT)
        for connection in rest:
            self.assertEqual(read_tensor(connection.makefile("rb")), data)

    def test_answers_in_a_pipeline_keep_their_order(self):
        self.serve()
        connection = self.connect()
        numbers = [struct.pack("<I", i) for i in range(200)]
        connection.sendall(b"".join(request(number) for number in numbers))
        stream = connection.makefile("rb")
        self.assertEqual([read_tensor(stream) for _ in numbers], numbers)


if __name__ == "__main__":
    unittest.main()
