"""A registry, a git server and a server that shows headers. They want a credential, and store every request."""
import base64, gzip, hashlib, http.server, io, json, os, socketserver, ssl, subprocess, sys, tarfile, tempfile, threading, zipfile

ADDRESS, DIRECTORY = sys.argv[1], sys.argv[2]
ROOT = tempfile.mkdtemp(dir=DIRECTORY)
os.chdir(ROOT)
SECRET = "s3cr3t-Credential-" + "0123456789"
KNOWN = {"Bearer " + SECRET, "token " + SECRET}
last = ""


def run(*words, **more):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def git(*words):
    who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    run("git", *who, *words, env=dict(os.environ, HOME=ROOT, GIT_CONFIG_NOSYSTEM="1"))


os.makedirs("work")
with open("work/file", "w") as file:
    file.write("REACHED by git\n")
git("init", "-q", "work")
git("-C", "work", "add", "file")
git("-C", "work", "commit", "-qm", "one")
os.makedirs("git")
git("clone", "-q", "--bare", "work", "git/repo.git")
git("-C", "git/repo.git", "config", "http.receivepack", "true")

tarball = io.BytesIO()
with tarfile.open(fileobj=tarball, mode="w:gz") as archive:
    for name, text in [("package.json", '{"name":"hello","version":"1.0.0","main":"i.js"}'), ("i.js", 'module.exports = "REACHED by npm"')]:
        entry = tarfile.TarInfo("package/" + name)
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
tarball = tarball.getvalue()
integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()

wheel = io.BytesIO()
with zipfile.ZipFile(wheel, "w") as archive:
    archive.writestr("hello.py", 'print("REACHED by pip")\n')
    archive.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
    archive.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    archive.writestr("hello-1.0.dist-info/RECORD", "hello.py,,\n")
wheel = wheel.getvalue()
LINK = b'<a href="hello-1.0-py3-none-any.whl">hello-1.0-py3-none-any.whl</a>'


class Forge(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global last
        body = self.body()
        with open(os.path.join(DIRECTORY, "requests"), "a") as file:
            headers = "; ".join(f"{name}: {value}" for name, value in self.headers.items())
            file.write(f"{self.requestline} | {headers} | {body[:200]!r}\n".replace(SECRET, "SECRET"))
        path = self.path.split("?")[0]
        given = self.headers.get("Authorization", "")
        basic = base64.b64decode(given[6:]).decode() if given.startswith("Basic ") else ""
        is_known = given in KNOWN or basic.endswith(":" + SECRET) or self.headers.get("X-Key") == SECRET
        if path == "/last":
            return self.say(last.encode())
        if path.startswith("/open/"):
            return self.say(b"REACHED\n")
        if not is_known:
            return self.say(b"who are you?\n", status=401)
        last = given
        if path.startswith("/git/"):
            return self.git(path, body)
        if path.startswith("/npm/hello"):
            if path.endswith(".tgz"):
                return self.say(tarball)
            dist = {"tarball": f"https://{self.headers['Host']}/npm/hello-1.0.0.tgz", "integrity": integrity}
            version = {"name": "hello", "version": "1.0.0", "main": "i.js", "dist": dist}
            return self.say(json.dumps({"name": "hello", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode(), kind="application/json")
        if path.startswith("/simple/hello"):
            return self.say(wheel) if path.endswith(".whl") else self.say(LINK, kind="text/html")
        if path == "/echo":
            return self.say(f"{given} {base64.b64encode(given.encode()).decode()} {given.encode().hex()}\n".encode())
        if path == "/echo-header":
            return self.say(b"\n", more={"X-Echo": given, "Location": "https://allowed.test/?t=" + given[7:]})
        if path == "/echo-chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for byte in given.encode():
                self.wfile.write(b"1\r\n" + bytes([byte]) + b"\r\n")
            return self.wfile.write(b"0\r\nX-End: " + given.encode() + b"\r\n\r\n")
        if path == "/redirect":
            return self.say(b"****\n", status=302, more={"Location": "http://evil.test/" + given[7:]})
        if path == "/gzip":
            return self.say(gzip.compress(given.encode()), more={"Content-Encoding": "gzip"})
        return self.say(b"REACHED\n")

    do_POST = do_PUT = do_HEAD = do_GET

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def git(self, path, body):
        environment = dict(
            os.environ, GIT_PROJECT_ROOT=os.path.join(ROOT, "git"), GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path[4:], HOME=ROOT, REMOTE_USER="me",
            REQUEST_METHOD=self.command, QUERY_STRING=self.path.partition("?")[2], CONTENT_TYPE=self.headers.get("Content-Type", ""),
            HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""), GIT_PROTOCOL=self.headers.get("Git-Protocol", ""), CONTENT_LENGTH=str(len(body)),
        )
        done = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=environment)
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        self.say(answer, status=status, kind=headers.pop("Content-Type", "text/plain"), more=headers)

    def say(self, body, status=200, kind="text/plain", more={}):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="forge"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


AUTHORITY, CERTIFICATE, KEY = (os.path.join(DIRECTORY, name) for name in ["authority.pem", "forge.pem", "forge-key.pem"])
if not os.path.exists(AUTHORITY):
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "a.key", "-out", "a.pem", "-days", "9", "-subj", "/CN=authority")
    run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", KEY, "-out", "f.csr", "-subj", "/CN=forge")
    with open("f.ext", "w") as file:
        file.write("subjectAltName=DNS:allowed.test\nbasicConstraints=CA:FALSE\n")
    run("openssl", "x509", "-req", "-in", "f.csr", "-CA", "a.pem", "-CAkey", "a.key", "-CAcreateserial", "-days", "9", "-extfile", "f.ext", "-out", CERTIFICATE)
    os.rename("a.pem", AUTHORITY)
sys.path.insert(0, DIRECTORY)
import raw_server

raw_server.Raw.DIRECTORY = DIRECTORY
for port, kind in [(9443, Forge), (9444, Forge), (9445, raw_server.Raw)]:
    server = Server((ADDRESS, port), kind)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever).start()
print("ready", flush=True)
