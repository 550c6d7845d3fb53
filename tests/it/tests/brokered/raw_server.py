"""A server that stores the bytes of requests as they come, and answers with what the path asks for.

`DIRECTORY/raw` has one line for each request: the head, the lines between the pieces of the body, and the body.
"""
import base64, gzip, json, os, socketserver


def chunked(*pieces, extension=b"", trailers=b""):
    lines = [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces]
    return b"".join(lines) + b"0\r\n" + trailers + b"\r\n"


def plain(body, head=b""):
    return b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def in_chunks(body, head=b""):
    return b"HTTP/1.1 200 OK\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n" + body


def answer(path, secret):
    """Returns the answer to a request that had this secret."""
    end, packed = b" REACHED\n", gzip.compress(secret)
    return {
        "/reason": b"HTTP/1.1 200 " + secret + b"\r\nContent-Length: 9\r\n\r\n" + end,
        "/hints": b"HTTP/1.1 103 Early Hints\r\nLink: <" + secret + b">\r\n\r\n" + plain(end),
        "/name": plain(end, secret + b": 1\r\n"),
        "/values": plain(end, b"X-One: a\r\nX-Two: b, " + secret + b"\r\nX-Two: " + secret + secret + b"\r\n"),
        "/cookie": plain(end, b"Set-Cookie: a=" + secret + b"; Path=/\r\n"),
        "/location": b"HTTP/1.1 302 Found\r\nLocation: /a?t=" + secret + b"\r\nContent-Length: 9\r\n\r\n" + end,
        "/encodings": plain(packed, b"Content-Encoding: identity\r\nContent-Encoding: gzip\r\n"),
        "/listed": plain(packed, b"Content-Encoding: identity, gzip\r\n"),
        "/transfer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + chunked(packed),
        "/lengths": in_chunks(chunked(secret, end), b"Content-Length: 3\r\n"),
        "/bytes": in_chunks(chunked(*[bytes([one]) for one in secret], end)),
        "/trailer": in_chunks(chunked(end, trailers=b"X-End: " + secret + b"\r\n")),
        "/extension": in_chunks(chunked(end, extension=b";a=" + secret)),
        "/border": plain(b"x" * (16384 - 7) + secret + end),
        "/twice": plain(secret + secret[:9] + secret + end),
        "/case": plain(secret.lower() + b" " + secret.upper() + end),
        "/base64": plain(base64.b64encode(b"x" + secret) + base64.b64encode(b"Bearer " + secret) + end),
        "/hex": plain(secret.hex().encode() + b" " + secret.hex().upper().encode() + end),
        "/escaped": plain(b"\n".join([
            b"".join(b"%%%02x" % one for one in secret), b"".join(b"\\u%04x" % one for one in secret),
            b"".join(b"&#%d;" % one for one in secret), b"".join(b"&#x%X;" % one for one in secret),
            secret.replace(b"-", b"%2D"), secret.replace(b"-", b"%252D"), secret.replace(b"-", b"&#45;"), secret.title(),
        ]) + end),
        "/part": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-15/99\r\nContent-Length: 16\r\n\r\n" + b"first half s3cr" + b"\n",
        "/close": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + secret + end,
        "/ten": b"HTTP/1.0 200 OK\r\n\r\n" + secret + end,
        "/error": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: %d\r\n\r\n" % (len(secret) + 9) + secret + end,
    }.get(path, plain(end))


class Raw(socketserver.BaseRequestHandler):
    """One connection. `DIRECTORY` is set by the importer."""

    buffer = b""

    def more(self):
        piece = self.request.recv(65536)
        if not piece:
            raise EOFError
        self.buffer += piece

    def until(self, end):
        while end not in self.buffer:
            self.more()
        taken, _, self.buffer = self.buffer.partition(end)
        return taken

    def exactly(self, count):
        while len(self.buffer) < count:
            self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def body(self, headers):
        """Reads a body as a server does that heeds chunks first: the lines between its pieces, and the pieces."""
        if "chunked" not in headers.get("transfer-encoding", ""):
            self.pieces = self.exactly(int(headers.get("content-length", 0)))
            return
        while True:
            self.lines.append(self.until(b"\r\n"))
            size = int(self.lines[-1].split(b";")[0], 16)
            if size == 0:
                break
            self.pieces += self.exactly(size)
            self.lines.append(self.until(b"\r\n"))
        while line := self.until(b"\r\n"):
            self.lines.append(line)

    def handle(self):
        self.head, self.lines, self.pieces = b"", [], b""
        try:
            while True:
                self.head, self.lines, self.pieces = b"", [], b""
                self.head = self.until(b"\r\n\r\n")
                first, *rest = self.head.decode("latin-1").split("\r\n")
                headers = {}
                for name, _, value in (line.partition(":") for line in rest):
                    headers[name.strip().lower()] = value.strip()
                self.body(headers)
                self.store()
                if first.split(" ")[1] == "/hang":
                    self.until(b"the end of the client")
                secret = headers.get("authorization", "Bearer none").split(" ")[-1].encode()
                said = answer(first.split(" ")[1], secret)
                self.request.sendall(said)
                if b"Connection: close" in said or said.startswith(b"HTTP/1.0"):
                    return
        except (EOFError, OSError, ValueError, IndexError):
            self.pieces += self.buffer
            if self.head or self.pieces:
                self.store()

    def store(self):
        texts = {"head": self.head, "between": b"\n".join(self.lines), "body": self.pieces}
        line = json.dumps({name: text.decode("latin-1") for name, text in texts.items()})
        with open(os.path.join(self.DIRECTORY, "raw"), "a") as file:
            file.write(line.replace("s3cr3t-Credential-" + "0123456789", "SECRET") + "\n")
