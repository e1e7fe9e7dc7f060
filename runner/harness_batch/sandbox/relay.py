"""The way out of a network namespace: TCP on its loopback to the proxy's unix socket outside.

Standard library only. The supervisor forks it before sockets of that kind are refused; bytes are
passed on as they come, and what may be reached the proxy decides.
"""

import socket
import threading

PORT = 3128
"""On the sandbox's own loopback, where nobody else listens when it begins."""
_CHUNK = 65_536
_MOST = 128
"""Connections at a time; more wait."""


def listening() -> socket.socket:
    """The socket that programs in the sandbox connect to. Raises: OSError."""
    return socket.create_server(("127.0.0.1", PORT), backlog=64)


def pass_on(server: socket.socket, proxy: bytes) -> None:
    """For ever: each connection to `server` becomes one to the unix socket `proxy`."""
    room = threading.BoundedSemaphore(_MOST)
    while True:
        room.acquire()
        inner, _ = server.accept()
        threading.Thread(target=_joined, args=(inner, proxy, room), daemon=True).start()


def _joined(inner: socket.socket, proxy: bytes, room: threading.BoundedSemaphore) -> None:
    try:
        with inner, socket.socket(socket.AF_UNIX) as outer:
            outer.connect(proxy)
            back = threading.Thread(target=_pump, args=(outer, inner), daemon=True)
            back.start()
            _pump(inner, outer)
            back.join()
    except OSError:
        pass  # the proxy is gone: so is the connection
    finally:
        room.release()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
