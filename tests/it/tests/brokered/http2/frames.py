"""Speaks HTTP/2 byte by byte. Run with a port and a time, it sends each case below on a connection of its own, and prints the answer.

A case has the text `theirs` where the gate must not let it through. An answer is awaited for that time, in seconds.
"""
import os, socket, ssl, struct, sys

TOKEN = os.environ.get("RAW_TOKEN", "none")
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 1, 4, 8, 0x20


def frame(kind, flags, stream, content=b""):
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def number(value, bits, first=0):
    """An integer of HPACK, with a prefix of some bits (RFC 7541 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def text(value):
    value = value if isinstance(value, bytes) else value.encode("latin-1")
    return number(len(value), 7) + value


def field(name, value, first=0x10):
    """A literal field: never indexed, unless `first` says 0x00 (not indexed) or 0x40 (indexed)."""
    return bytes([first]) + text(name) + text(value)


def fields(*pairs):
    return b"".join(field(*pair) for pair in pairs)


def usual(method="GET", path="/a", authority=None, scheme="https"):
    return [(":method", method), (":scheme", scheme), (":authority", authority or PLACE), (":path", path)]


OWN = ("authorization", "Bearer " + TOKEN)
WANTED = ("x-wanted", "1")


def head(pairs, stream=1, flags=END_STREAM):
    return frame(HEADERS, END_HEADERS | flags, stream, fields(*pairs))


def get(path="/a", *more, **others):
    return head(usual(path=path, **others) + [WANTED, OWN, *more])


def post(path="/mine/a", *more, body=b"body", frames=None, **others):
    content = frames if frames is not None else frame(DATA, END_STREAM, 1, body)
    return head(usual("POST", path, **others) + [WANTED, OWN, *more], flags=0) + content


def bare(*pairs):
    return head([*pairs, WANTED, OWN])


def cases():
    """The attacks, and after `controls` what is none."""
    u = usual()
    m, s, a, p = u
    long = "a" * 5000
    yield from {
        # Pseudo-headers.
        "no method": bare(s, a, (":path", "/theirs")),
        "no scheme": bare(m, a, (":path", "/theirs")),
        "no path": bare(m, s, a, ("x-a", "theirs")),
        "no authority": bare(m, s, (":path", "/theirs")),
        "no authority, and a host": bare(m, s, (":path", "/theirs"), ("host", PLACE)),
        "an empty path": bare(m, s, a, (":path", ""), ("x-a", "theirs")),
        "an empty authority": bare(m, s, (":authority", ""), (":path", "/theirs")),
        "an empty method": bare((":method", ""), s, a, (":path", "/theirs")),
        "two methods": bare(m, (":method", "DELETE"), s, a, (":path", "/theirs")),
        "two paths": bare(m, s, a, p, (":path", "/theirs")),
        "two authorities": bare(m, s, a, (":authority", "theirs.test"), p),
        "two schemes": bare(m, s, ("scheme", "http"), (":scheme", "http"), a, (":path", "/theirs")),
        "a pseudo-header after a header": head([m, s, a, WANTED, OWN, (":path", "/theirs")]),
        "a status": bare(*u[:3], (":status", "200"), (":path", "/theirs")),
        "an unknown pseudo-header": bare(*u[:3], (":theirs", "1"), (":path", "/theirs")),
        "a pseudo-header in capitals": bare(m, s, a, (":Path", "/theirs")),
        "plain HTTP": get("/theirs", scheme="http"),
        "another scheme": get("/theirs", scheme="theirs"),
        # The host.
        "another authority": get("/theirs", authority="theirs.test"),
        "an authority with a user": get("/theirs", authority="theirs@" + PLACE),
        "another port": get("/theirs", authority="allowed.test:9443"),
        "another declared host": get("/theirs", authority="allowed.test:9444"),
        "an authority with a path": get("/a", authority=PLACE + "/theirs"),
        "an authority with a line": get("/a", authority=PLACE + "\r\nx-theirs: 1"),
        "a host that differs": get("/theirs", ("host", "theirs.test")),
        "two hosts": get("/theirs", ("host", PLACE), ("host", PLACE)),
        "a host and its port elsewhere": get("/theirs", ("host", "allowed.test")),
        # The target.
        "an absolute path": get("https://theirs.test/a"),
        "a path without a slash": get("theirs"),
        "a path that begins with an at": get("@theirs/a"),
        "an asterisk": bare((":method", "OPTIONS"), s, a, (":path", "*"), ("x-a", "theirs")),
        "a path with a space": get("/a /theirs HTTP/1.1"),
        "a path with a line": get("/a HTTP/1.1\r\nx-theirs: 1\r\n\r\n"),
        "a path with a zero byte": get("/a\0theirs"),
        "a path with dots": post("/mine/../theirs"),
        "a path with encoded dots": post("/mine/%2e%2e/theirs"),
        "a path with a backslash": post("/mine/..\\theirs"),
        "a path with an encoded slash": post("/mine%2f..%2ftheirs"),
        "another method in the query": post("/mine/a?_method=theirs"),
        # Methods.
        "a tunnel": bare((":method", "CONNECT"), (":authority", "theirs.test:443")),
        "a tunnel with a path": bare((":method", "CONNECT"), s, a, (":path", "/theirs")),
        "a tunnel for WebSockets": bare((":method", "CONNECT"), (":protocol", "websocket"), s, a, (":path", "/theirs")),
        "a protocol without a tunnel": bare(m, (":protocol", "websocket"), s, a, (":path", "/theirs")),
        "a method with a line": bare((":method", "GET /theirs HTTP/1.1\r\nx-a:"), s, a, p),
        "a method in small letters": bare((":method", "get"), s, a, (":path", "/theirs")),
        "another method in a header": post("/mine/theirs", ("x-http-method-override", "DELETE")),
        # Headers.
        "connection": get("/theirs", ("connection", "x-wanted")),
        "keep-alive": get("/theirs", ("keep-alive", "timeout=5")),
        "proxy-connection": get("/theirs", ("proxy-connection", "close")),
        "an upgrade": get("/theirs", ("upgrade", "websocket")),
        "chunks": post("/mine/theirs", ("transfer-encoding", "chunked"), body=b"0\r\n\r\nGET /theirs HTTP/1.1\r\n\r\n"),
        "te": get("/theirs", ("te", "gzip")),
        "a name in capitals": get("/theirs", ("X-A", "1")),
        "a name with a line": get("/theirs", ("x-a: 1\r\nx-b", "1")),
        "a name with a colon": get("/theirs", ("x-a:b", "1")),
        "a name with a space": get("/theirs", ("x a", "1")),
        "an empty name": get("/theirs", ("", "1")),
        "a value with a line": get("/theirs", ("x-a", "1\r\nx-b: 2")),
        "a value with a line feed": get("/theirs", ("x-a", "1\nx-b: 2")),
        "a value with a zero byte": get("/theirs", ("x-a", "1\0")),
        "a value that begins with a space": get("/theirs", ("x-a", " 1")),
        "a value that ends with a tab": get("/theirs", ("x-a", "1\t")),
        "a length with an underscore": post("/mine/theirs", ("content_length", "0")),
        "two credentials": get("/theirs", ("authorization", "Bearer other")),
        "a placeholder in two pieces": head(usual(path="/theirs") + [WANTED, ("authorization", "Bearer " + TOKEN[:20]), ("authorization", TOKEN[20:])]),
        "a placeholder in a cookie": get("/theirs", ("cookie", "a=1"), ("cookie", "b=" + TOKEN)),
        "a placeholder in another header": get("/theirs", ("x-a", TOKEN)),
        "a placeholder in the path": get("/theirs" + TOKEN),
        "a header that is wanted is missing": head(usual(path="/theirs") + [OWN]),
        "a path that the credential is not for": post("/theirs"),
        # Bodies.
        "a length that is too short": post("/mine/theirs", ("content-length", "1")),
        "a length that is too long": post("/mine/theirs", ("content-length", "99")),
        "two lengths": post("/mine/theirs", ("content-length", "4"), ("content-length", "5")),
        "a list of lengths": post("/mine/theirs", ("content-length", "4, 4")),
        "a length that is no number": post("/mine/theirs", ("content-length", "+4")),
        "a length without a body": head(usual("POST", "/mine/theirs") + [WANTED, OWN, ("content-length", "4")]),
        "a placeholder in the body": post("/mine/a", frames=frame(DATA, 0, 1, b"theirs " + TOKEN[:3].encode()) + frame(DATA, END_STREAM, 1, TOKEN[3:].encode())),
        "a placeholder behind padding": post("/mine/a", frames=frame(DATA, PADDED, 1, b"\x03theirs " + TOKEN[:3].encode() + b"\0\0\0") + frame(DATA, END_STREAM, 1, TOKEN[3:].encode())),
        "a placeholder in trailers": post("/mine/a", frames=frame(DATA, 0, 1, b"x") + head([("x-theirs", TOKEN)])),
        "trailers with a pseudo-header": post("/mine/a", frames=frame(DATA, 0, 1, b"x") + head([(":path", "/theirs")])),
        "trailers that frame": post("/mine/a", frames=frame(DATA, 0, 1, b"x") + head([("content-length", "9"), ("x-a", "theirs")])),
        "data after the end": post("/mine/a", frames=frame(DATA, END_STREAM, 1, b"x") + frame(DATA, 0, 1, b"theirs")),
        "a request behind the body": post("/mine/a", body=b"x") + b"GET /theirs HTTP/1.1\r\nHost: " + PLACE.encode() + b"\r\n\r\n",
        # Frames.
        "no greeting": get("/theirs"),
        "HTTP/1.1 in place of the greeting": f"GET /theirs HTTP/1.1\r\nHost: {PLACE}\r\nX-Wanted: 1\r\n\r\n".encode(),
        "a stream of the server": frame(HEADERS, END_HEADERS | END_STREAM, 2, fields(*usual(path="/theirs"), WANTED, OWN)),
        "the stream of the connection": frame(HEADERS, END_HEADERS | END_STREAM, 0, fields(*usual(path="/theirs"), WANTED, OWN)),
        "a stream that goes back": head(usual(path="/hang") + [WANTED], 5) + head(usual(path="/theirs") + [WANTED, OWN], 3),
        "a stream that depends on itself": frame(HEADERS, END_HEADERS | END_STREAM | WITH_PRIORITY, 1, struct.pack(">IB", 1, 0) + fields(*usual(path="/theirs"), WANTED, OWN)),
        "padding that is too long": frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1, b"\xff" + fields(*usual(path="/theirs"))),
        "a head that goes on elsewhere": frame(HEADERS, END_STREAM, 1, fields(*usual(path="/theirs"))) + frame(CONTINUATION, END_HEADERS, 3, fields(WANTED, OWN)),
        "a frame within a head": frame(HEADERS, END_STREAM, 1, fields(*usual(path="/theirs"))) + frame(PING, 0, 0, bytes(8)) + frame(CONTINUATION, END_HEADERS, 1, fields(WANTED, OWN)),
        "a continuation of nothing": frame(CONTINUATION, END_HEADERS, 1, fields(*usual(path="/theirs"), WANTED, OWN)),
        "a promise": frame(PUSH, END_HEADERS, 1, struct.pack(">I", 2) + fields(*usual(path="/theirs"))),
        "a frame that is too long": frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(*usual(path="/theirs"), WANTED, OWN, *[("x-a", long)] * 5)),
        "a head that is too long": frame(HEADERS, END_STREAM, 1, fields(*usual(path="/theirs"), WANTED, OWN, *[("x-a", long)] * 3)) + frame(CONTINUATION, END_HEADERS, 1, fields(*[("x-a", long)] * 3)),
        "a setting that is not allowed": frame(SETTINGS, 0, 0, struct.pack(">HI", 2, 7)) + get("/theirs"),
        "a window that is too large": frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0x80000000)) + get("/theirs"),
        "a frame that is allowed to be too small": frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 1)) + get("/theirs"),
        "settings of a stream": frame(SETTINGS, 0, 1) + get("/theirs"),
        "a window that grows by nothing": frame(WINDOW, 0, 0, bytes(4)) + get("/theirs"),
        "a window that overflows": frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") + get("/theirs"),
        "an index that does not exist": frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(*usual(path="/theirs"), WANTED, OWN) + b"\xff\x50"),
        "an index of nothing": frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(*usual(path="/theirs"), WANTED, OWN) + b"\x80"),
        "a number without an end": frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(*usual(path="/theirs"), WANTED, OWN) + b"\xff" * 20),
        "a text that is cut": frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(*usual(path="/theirs"), WANTED, OWN) + b"\x10\x7f\x50x"),
        "a table that is too large": frame(HEADERS, END_HEADERS | END_STREAM, 1, number(1 << 30, 5, 0x20) + fields(*usual(path="/theirs"), WANTED, OWN)),
        "text that is no Huffman code": frame(HEADERS, END_HEADERS | END_STREAM, 1, fields(*usual(path="/theirs"), WANTED, OWN) + b"\x10\x03x-a\x84\xff\xff\xff\xff"),
        "a request after the end of the connection": frame(GOAWAY, 0, 0, bytes(8)) + frame(RESET, 0, 1, bytes(4)) + get("/theirs"),
    }.items()
    yield "controls", b""
    yield from {
        "a request": get("/a"),
        "a request with a host": get("/a", ("host", PLACE)),
        "cookies in pieces": get("/cookie", ("cookie", "a=1"), ("cookie", "b=2")),
        "a body": post(),
        "a body with its length": post("/mine/a", ("content-length", "4")),
        "a body with padding": post("/mine/a", frames=frame(DATA, PADDED | END_STREAM, 1, b"\x03body\0\0\0")),
        "trailers": post("/mine/a", frames=frame(DATA, 0, 1, b"body") + head([("x-end", "1")])),
        "a head in two frames": frame(HEADERS, END_STREAM, 1, fields(*usual())) + frame(CONTINUATION, END_HEADERS, 1, fields(WANTED, OWN)),
        "two requests": get("/a") + head(usual() + [WANTED, OWN], 3),
        "frames of an unknown kind": frame(0xab, 0xff, 0, b"theirs") + get("/a"),
    }.items()


def connect(port, protocols=("h2",)):
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    context.set_alpn_protocols(list(protocols))
    plain = socket.create_connection(("allowed.test", port), timeout=10)
    return context.wrap_socket(plain, server_hostname="allowed.test")


def frames_of(answer):
    """Yields kind, flags, stream and content of the frames that came."""
    while len(answer) >= 9:
        length, kind, flags, stream = int.from_bytes(answer[:3], "big"), answer[3], answer[4], int.from_bytes(answer[5:9], "big")
        yield kind, flags, stream, answer[9 : 9 + length]
        answer = answer[9 + length :]


def shown(answer):
    """Returns what the gate answered, without what every connection has."""
    for kind, flags, stream, content in frames_of(answer):
        if kind == DATA:
            yield f"DATA {content.decode('latin-1')}"
        elif kind == RESET:
            yield f"RESET {stream} {int.from_bytes(content, 'big')}"
        elif kind == GOAWAY:
            yield f"GOAWAY {int.from_bytes(content[4:8], 'big')}"
        elif kind == HEADERS:
            yield f"HEAD {stream} {content[0]:02x}"


def exchange(port, wait, name, content):
    answer = b""
    try:
        with connect(port) as stream:
            greeting = b"" if "greeting" in name else GREETING + frame(SETTINGS, 0, 0)
            stream.sendall(greeting + content)
            stream.settimeout(wait)
            while piece := stream.recv(65536):
                answer += piece
                if any(kind in (DATA, HEADERS) and flags & END_STREAM or kind == RESET for kind, flags, *_ in frames_of(answer)):
                    stream.settimeout(wait / 4)
    except OSError:
        pass
    return answer


if __name__ == "__main__":
    PLACE = f"allowed.test:{sys.argv[1]}"
    for name, content in cases():
        print(f"<{name}>", *shown(exchange(int(sys.argv[1]), float(sys.argv[2]), name, content)), sep="\n", flush=True)
        print(f"</{name}>", flush=True)
