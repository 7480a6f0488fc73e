"""A wire between master and node that can be held, in one direction or both, and cut."""
import socket
import threading


class Proxy:
    """A node that connects to `address` reaches the master, until somebody holds or cuts the wire."""

    def __init__(self, target):
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._passing = threading.Condition()
        self._held = set()  # of the directions: True is what the node says
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def hold_answers(self):
        """What the node says from now on does not arrive."""
        with self._passing:
            self._held = {True}

    def hold(self):
        """Nothing arrives on either side, and nobody is told."""
        with self._passing:
            self._held = {True, False}

    def let_go(self):
        """What was held arrives now, and what follows."""
        with self._passing:
            self._held = set()
            self._passing.notify_all()

    def cut(self):
        """Both ends lose the connection, and what was held is lost. Later connections pass again."""
        with self._passing:
            self._held = set()
            ends, self._open = self._open, []
            self._passing.notify_all()
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was first

    def close(self):
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                node, _ = self._listener.accept()
            except OSError:
                return
            try:
                master = socket.create_connection(self._target)
            except OSError:
                node.close()
                continue
            with self._passing:
                self._open += [node, master]
            threading.Thread(target=self._pump, args=(node, master, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(master, node, False), daemon=True).start()

    def _pump(self, source, sink, answers):
        try:
            while data := source.recv(65536):
                if not self._may_pass(source, answers):
                    break
                sink.sendall(data)
        except OSError:
            pass  # an end of the wire went away
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _may_pass(self, source, answers):
        """False: the wire was cut while the words were held."""
        with self._passing:
            self._passing.wait_for(lambda: answers not in self._held)
            return source in self._open
