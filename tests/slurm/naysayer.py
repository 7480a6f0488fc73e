"""A node daemon that answers as the test says: well, and at one kind of message with silence, an end, a no or nonsense."""
import array
import contextlib
import os
import socket
import struct
import threading

from local_wire import ACQUIRE, BYTES, CLAIM, MAGIC, OK, REPLY, message

STEP_BEGIN, STEP_END, OUTLOOK, ACCOUNT = 12, 13, 14, 15
PERMISSION = 12
NO = "no, says the node"
_REPLY = struct.Struct("<iIQQQQII176sII")


def reply(request, status=OK, detail="", epoch=0):
    return message(REPLY, request, _REPLY.pack(status, epoch, epoch, 0, 0, 0, 0, 0, detail.encode(), 0, 0))


def as_file(text):
    """A descriptor from which the text can be read, as the daemon hands texts over."""
    fd = os.memfd_create("text")
    os.write(fd, text)
    return fd


def send_with(connection, data, fd):
    connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)


class Naysayer:
    """with Naysayer(path) as n: n.at(STEP_BEGIN, "hangs") …  `heard` is what was asked, by kind."""

    def __init__(self, path):
        self.path = str(path)
        self.heard = []
        self.connections = 0
        self.environment = b"TIMESLICE_DEVICES=0\n"
        self._kind, self._how = None, None
        self._held = contextlib.ExitStack()
        self._socket = self._held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self._socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._held.close()
        os.unlink(self.path)

    def at(self, kind, how):
        """What becomes of the messages of a kind; of all others: they are answered well."""
        self._kind, self._how = kind, how
        self.heard.clear()
        self.connections = 0

    def be_nice(self):
        self.at(None, None)

    def _accept(self):
        talks = []
        while True:
            try:
                connection = self._socket.accept()[0]
            except OSError:
                break
            self.connections += 1
            self._held.callback(connection.close)
            talks.append(threading.Thread(target=self._talk, args=(connection,), daemon=True))
            talks[-1].start()

    def _talk(self, connection):
        with contextlib.suppress(OSError):
            while data := connection.recv(BYTES):
                magic, _, kind, request = struct.unpack_from("<IHHQ", data)
                assert magic == MAGIC
                self.heard.append(kind)
                if kind == self._kind:
                    self._answer_badly(connection, request)
                elif kind != CLAIM:
                    self._answer(connection, kind, request)

    def _answer(self, connection, kind, request):
        if kind == STEP_BEGIN:
            send_with(connection, reply(request), as_file(self.environment))
        else:
            connection.send(reply(request, epoch=int(kind == ACQUIRE)))

    def _answer_badly(self, connection, request):
        if self._how == "fails":
            connection.shutdown(socket.SHUT_RDWR)
        elif self._how == "refuses":
            connection.send(reply(request, PERMISSION, NO))
        elif self._how == "babbles":
            connection.send(os.urandom(BYTES))
        elif self._how == "stammers":
            connection.send(reply(request)[:20])
        elif self._how == "shouts":  # a detail without an end, and a text that is longer than any
            send_with(connection, reply(request, PERMISSION, "?" * 200), as_file(b"A=" + b"?" * (1 << 20)))
            connection.send(reply(request, detail="!" * 200))
        elif self._how == "chatters":  # of what nobody asked
            while True:
                connection.send(reply(request + 1))
        elif self._how == "trips":
            send_with(connection, reply(request), os.open("/", os.O_RDONLY))
