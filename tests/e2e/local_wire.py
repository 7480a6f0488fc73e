"""The node's socket without the library: for messages that no library would send."""
import socket
import struct

MAGIC = 0x314C5354
BYTES = 256
HELLO, CLAIM, JOIN, ACQUIRE, CANCEL, YIELD, LEAVE, STATUS = 1, 2, 3, 4, 5, 6, 7, 8
REPLY = 64
OK, NOT_JOINED, VERSION_MISMATCH, PROTOCOL = 0, 8, 23, 27
_HEADER = struct.Struct("<IHHQ")
_REPLY = struct.Struct("<iIQQQQII176s")


class Reply:
    def __init__(self, message):
        _, _, self.type, self.request = _HEADER.unpack_from(message)
        fields = _REPLY.unpack_from(message, _HEADER.size)
        self.status = fields[0]
        self.detail = fields[8].split(b"\0", 1)[0].decode()


def message(kind, request, payload=b"", magic=MAGIC, version=1):
    return (_HEADER.pack(magic, version, kind, request) + payload).ljust(BYTES, b"\0")


def hello(low=1, high=1):
    return struct.pack("<HH", low, high)


def join(group, job):
    return struct.pack("<64s64sIiII16s", group.encode(), job.encode(), 0, 0, 0, 0, b"")


def acquire(deadline_ms=-1):
    return struct.pack("<q32s", deadline_ms, b"")


class Wire:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self._request = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.send(data)

    def hear(self):
        """The next reply, or None when the node has closed the connection."""
        try:
            data = self.socket.recv(4096)
        except ConnectionResetError:
            return None
        return Reply(data) if data else None

    def ask(self, kind, payload=b"", **header):
        self._request += 1
        self.send(message(kind, self._request, payload, **header))
        return self.hear()
