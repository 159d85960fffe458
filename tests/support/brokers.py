"""A broker for tests: librdkafka's own mock, with what it lacks.

The mock does not say that it is a controller, so nobody asks it for the ids of topics, and it cannot make a
topic anew. Both is put into its answers on their way. It may be away, too.
"""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

from confluent_kafka import Producer
from tests.support.patience import PATIENCE

#: the request for what there is, and the one for who coordinates: their answers name brokers
_METADATA, _COORDINATOR = 3, 10


def mock_broker() -> tuple[int, Producer]:
    """The port of a broker in this process, which lives as long as the producer."""
    quiet = logging.getLogger("mock broker")
    quiet.addHandler(logging.NullHandler())
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused:1"}, logger=quiet)
    (known,) = producer.list_topics(timeout=PATIENCE).brokers.values()
    return known.port, producer


class FrontedBroker:
    """A mock behind a socket of its own."""

    def __init__(self) -> None:
        self._port, self.producer = mock_broker()
        self._server = socket.socket()
        self._server.bind(("127.0.0.1", 0))
        self._here = self._server.getsockname()[1]
        self.url = f"127.0.0.1:{self._here}"
        #: the mock itself, which knows of no other topic
        self.behind = f"127.0.0.1:{self._port}"
        self._renewed: set[bytes] = set()

    def listen(self) -> None:
        """From now on it answers."""
        self._server.listen()
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def send(self, topic: str, *values: str) -> None:
        """Messages, all to the first partition."""
        for value in values:
            self.producer.produce(topic, value=value, partition=0)
        assert self.producer.flush(PATIENCE) == 0

    def renew(self, topic: str) -> None:
        """The topic is another one of its name from now on, with as many messages."""
        self._renewed.add(topic.encode())

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(("127.0.0.1", self._port))
                kinds: dict[int, tuple[int, int]] = {}
                Thread(target=self._ask, args=(client, broker, kinds), daemon=True).start()
                Thread(target=self._answer, args=(broker, client, kinds), daemon=True).start()

    def _ask(self, client: socket.socket, broker: socket.socket, kinds: dict[int, tuple[int, int]]) -> None:
        with suppress(OSError):
            for message in _messages(client):
                key, version, number = struct.unpack(">hhi", message[:8])
                kinds[number] = key, version
                broker.sendall(struct.pack(">i", len(message)) + message)
        broker.close()

    def _answer(
        self, broker: socket.socket, client: socket.socket, kinds: dict[int, tuple[int, int]]
    ) -> None:
        with suppress(OSError):
            for message in _messages(broker):
                (number,) = struct.unpack(">i", message[:4])
                changed = self._changed(message, *kinds.pop(number))
                client.sendall(struct.pack(">i", len(changed)) + changed)
        client.close()

    def _changed(self, message: bytes, kind: int, version: int) -> bytes:
        if kind in (_METADATA, _COORDINATOR):
            message = message.replace(struct.pack(">i", self._port), struct.pack(">i", self._here))
        if kind != _METADATA:
            return message
        assert version >= 10, "texts have their lengths in a byte before them, and topics have ids"
        name = message.index(b"mockCluster")
        controller = name + message[name - 1] - 1
        message = message[:controller] + struct.pack(">i", 1) + message[controller + 4 :]
        for topic in self._renewed:
            begin = message.find(bytes([len(topic) + 1]) + topic)
            if begin >= 0:
                place = begin + 1 + len(topic)
                other = bytes(255 - byte for byte in message[place : place + 16])
                message = message[:place] + other + message[place + 16 :]
        return message


def _messages(connection: socket.socket) -> Iterator[bytes]:
    with connection.makefile("rb") as stream:
        while len(size := stream.read(4)) == 4:
            yield stream.read(*struct.unpack(">i", size))
