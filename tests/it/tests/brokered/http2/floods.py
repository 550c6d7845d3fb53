"""Floods of HTTP/2, one after the other. Prints for each whether the gate closed the connection, and after what."""
import threading, time, urllib.request
import frames
from frames import *

PLACE = frames.PLACE = "allowed.test:9456"
SECONDS = 2.0
slowest, stop = 0.0, threading.Event()


def ordinary():
    """Makes ordinary requests all the time, and keeps how long the slowest took."""
    global slowest
    while not stop.is_set():
        began = time.monotonic()
        asked = urllib.request.Request("https://allowed.test:9443/wants", headers={"Authorization": "Bearer " + os.environ["FORGE_TOKEN"]})
        assert b"REACHED" in urllib.request.urlopen(asked, timeout=60).read()
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.1)


def begun(settings=b""):
    stream = connect(9456)
    stream.sendall(GREETING + frame(SETTINGS, 0, 0, settings))
    return stream


def flood(name, piece, first=b"", settings=b""):
    """Sends `piece(n)` over and over, without reading more than the connection needs."""
    count, began, how = 0, time.monotonic(), "open"
    try:
        with begun(settings) as stream:
            stream.sendall(first)
            stream.settimeout(SECONDS)
            while time.monotonic() - began < SECONDS:
                stream.sendall(b"".join(piece(count + number) for number in range(20)))
                count += 20
    except TimeoutError:
        how = "full"
    except OSError:
        how = "closed"
    print(name, "|", how, "|", count, "|", f"{time.monotonic() - began:.1f}", flush=True)


def held(name, paths, settings, wait, after=b""):
    """Makes requests, reads nothing, and keeps the connection for a while."""
    how = "open"
    try:
        with begun(settings) as stream:
            for number, path in enumerate(paths):
                stream.sendall(head(usual(path=path) + [WANTED], 2 * number + 1))
            stream.sendall(after)
            time.sleep(wait)
            stream.settimeout(1)
            answer = b""
            while len(answer) < 1 << 20 and (piece := stream.recv(65536)):
                answer += piece
            refused = sum(kind == RESET for kind, *_ in frames_of(answer))
            how = f"open {len(answer)} {refused}"
    except TimeoutError:
        how = f"open {len(answer)} {sum(kind == RESET for kind, *_ in frames_of(answer))}"
    except OSError:
        how = "closed"
    print(name, "|", how, flush=True)


def dripping():
    """Sends the head of a request, one byte in a second."""
    began = time.monotonic()
    try:
        with begun() as stream:
            for byte in head(usual()):
                stream.sendall(bytes([byte]))
                time.sleep(1)
    except OSError:
        pass
    print("a head that drips | closed |", f"{time.monotonic() - began:.0f}", flush=True)


def silent():
    """Says nothing after the handshake."""
    began = time.monotonic()
    with connect(9456) as stream:
        stream.settimeout(60)
        try:
            stream.recv(1 << 16)
            while stream.recv(1 << 16):
                pass
        except OSError:
            pass
    print("no greeting at all | closed |", f"{time.monotonic() - began:.0f}", flush=True)


def long_heads():
    """Sends heads of HTTP/1.1 that do not end, and keeps the connections open."""
    all = []
    for _ in range(300):
        one = connect(9456, ("http/1.1",))
        one.settimeout(1)
        try:
            one.sendall(b"GET /a HTTP/1.1\r\nX-A: " + b"a" * 400000)
        except OSError:
            pass
        all.append(one)
    for one in all:
        one.close()
    print("long heads of HTTP/1.1 |", len(all), flush=True)


def many_connections():
    """Opens more connections than speak HTTP/2 at the same time."""
    both = lambda: connect(9456, ("h2", "http/1.1"))
    all = [both() for _ in range(40)]
    versions = [one.selected_alpn_protocol() for one in all]
    last = all[versions.index("http/1.1")]
    last.sendall(f"GET /a HTTP/1.1\r\nHost: {PLACE}\r\nConnection: close\r\n\r\n".encode())
    answer = b""
    while piece := last.recv(65536):
        answer += piece
    for one in all:
        one.close()
    print("many connections |", versions.count("h2"), versions.count("http/1.1"), b"REACHED" in answer, flush=True)


def main():
    watching = threading.Thread(target=ordinary)
    watching.start()
    slow = [threading.Thread(target=one) for one in [dripping, silent]]
    for one in slow:
        one.start()
    request = fields(*usual(path="/a"), WANTED)
    flood("requests that are withdrawn", lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, request) + frame(RESET, 0, 2 * n + 1, struct.pack(">I", 8)))
    flood("settings", lambda n: frame(SETTINGS, 0, 0))
    flood("settings that change", lambda n: frame(SETTINGS, 0, 0, struct.pack(">HI", 4, n % 99999)))
    flood("pings", lambda n: frame(PING, 0, 0, bytes(8)))
    flood("answers to pings", lambda n: frame(PING, 1, 0, bytes(8)))
    flood("priorities", lambda n: frame(PRIORITY, 0, 2 * n + 1, bytes(5)))
    flood("frames of an unknown kind", lambda n: frame(0xAB, 0, 0, bytes(1000)))
    flood("empty continuations", lambda n: frame(CONTINUATION, 0, 1), frame(HEADERS, 0, 1, request))
    flood("long continuations", lambda n: frame(CONTINUATION, 0, 1, field("x-a", "a" * 9000)), frame(HEADERS, 0, 1, request))
    flood("empty data", lambda n: frame(DATA, 0, 1), head(usual("POST", "/hang") + [WANTED], flags=0))
    flood("padded empty data", lambda n: frame(DATA, PADDED, 1, b"\0"), head(usual("POST", "/hang") + [WANTED], flags=0))
    flood("tiny data", lambda n: frame(DATA, 0, 1, b"x"), head(usual("POST", "/hang") + [WANTED], flags=0))
    flood("windows", lambda n: frame(WINDOW, 0, 0, struct.pack(">I", 1)))
    flood("malformed requests", lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, fields((":method", "GET"))))
    bomb = field("x-a", "a" * 3900, 0x40)
    flood("a long field, a thousand times", lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 3, request + b"\xbe" * 4000), frame(HEADERS, END_HEADERS | END_STREAM, 1, request + bomb))
    flood("tables that grow and shrink", lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, number(0, 5, 0x20) + number(4096, 5, 0x20) + request))
    flood("streams that do not end", lambda n: frame(HEADERS, END_HEADERS, 2 * n + 1, fields(*usual("POST", "/hang"), WANTED)))
    flood("requests as fast as possible", lambda n: frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, request))
    none = struct.pack(">HI", 4, 0)
    held("answers without a window", ["/big"] * 100, none, 3)
    wide = struct.pack(">HI", 4, 0x7FFFFFFF)
    held("answers that are not read", ["/big"] * 100, wide, 3, frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFF0000)))
    table = struct.pack(">HI", 1, 0xFFFFFFFF)
    held("a huge table", ["/heads"] * 90, table + wide, 2)
    held("too many streams", ["/hang"] * 300, none, 2)
    for one in slow:
        one.join()
    long_heads()
    many_connections()
    stop.set()
    watching.join()
    print("slowest |", f"{slowest:.2f}", flush=True)


main()
