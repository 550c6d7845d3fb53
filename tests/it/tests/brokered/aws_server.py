"""Signature version 4 of AWS, and a server that accepts requests with the signature of the real keys only.

Written from AWS's description, so that it shares no mistake with the gate. `DIRECTORY/aws` has one line for each request.
"""
import hashlib, hmac, http.server, os, urllib.parse

ID, KEY, SESSION = "AKIAREAL0REAL0REAL00", "s3cr3t/Key+0f/AWS" + "+0123456789abcdefghij", "s3cr3t-t0ken-0f-" + "the-session/AAAA="


def keyed(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def encoded(text, kept=""):
    return urllib.parse.quote(text, safe="-._~" + kept)


def signature(secret, date, scope, method, target, headers, names, payload):
    """Returns the signature of a request; `headers` are pairs."""
    path, _, query = target.partition("?")
    day, region, service, _ = scope.split("/")
    if service != "s3":
        path = encoded(path, "/")
    pairs = sorted((encoded(name), encoded(value)) for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True))
    values = {name: ",".join(" ".join(value.split()) for known, value in headers if known.lower() == name) for name in names}
    lines = [method, path, "&".join("=".join(pair) for pair in pairs), *[f"{name}:{values[name]}" for name in names], "", ";".join(names), payload]
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in [day, region, service, "aws4_request"]:
        key = keyed(key, part)
    return keyed(key, text).hex()


class Aws(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    DIRECTORY = ""

    def do_GET(self):
        body = self.body()
        why = self.fault(body)
        with open(os.path.join(self.DIRECTORY, "aws"), "a") as file:
            headers = "; ".join(f"{name}: {value}" for name, value in self.headers.items())
            file.write(f"{why or 'good'} | {self.requestline} | {headers} | {body[:300]!r}\n")
        given = self.headers.get("Authorization", "")
        told = f"{ID} {KEY} {SESSION} {KEY.encode().hex()} {given}"
        answer = f"{told}\nREACHED\n" if self.path.startswith("/echo") else "REACHED\n"
        if why:
            answer = f"<Error><Message>{why}</Message><AWSAccessKeyId>{ID}</AWSAccessKeyId><StringToSign>{given}</StringToSign></Error>\n"
        self.send_response(403 if why else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.encode())

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def fault(self, body):
        """Says why a request is not accepted."""
        given = self.headers.get("Authorization", "")
        if not given.startswith("AWS4-HMAC-SHA256 "):
            return "no signature"
        parts = dict(part.strip().split("=", 1) for part in given.split(" ", 1)[1].split(","))
        known, _, scope = parts["Credential"].partition("/")
        names = parts["SignedHeaders"].split(";")
        unsigned = [name for name in self.headers if name.lower().startswith("x-amz-") and name.lower() not in names]
        if unsigned or "host" not in names:
            return f"not signed: {unsigned}"
        if self.headers.get("X-Amz-Security-Token") != SESSION:
            return "another token"
        payload = self.headers.get("X-Amz-Content-Sha256", hashlib.sha256(body).hexdigest())
        if len(payload) == 64 and payload != hashlib.sha256(body).hexdigest():
            return "another body"
        right = signature(KEY, self.headers["X-Amz-Date"], scope, self.command, self.path, self.headers.items(), names, payload)
        return "" if known == ID and parts["Signature"] == right else "another signature"

    def log_message(self, *words):
        pass
