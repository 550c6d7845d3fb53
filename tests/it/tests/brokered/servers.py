# A registry, a git server and a server that shows headers. They want a credential, and store every request.
SECRET = "s3cr3t-Credential-" + "0123456789"
KNOWN = {"Bearer " + SECRET, "token " + SECRET}
last = ""
told = []


def run(*words, **more):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


os.makedirs("git")
make_repository("git/repo.git")
git("-C", "git/repo.git", "config", "http.receivepack", "true")


def for_pushes():
    """Makes the repositories that pushes go to, as they were at first."""
    for name, kind in [("pushed", "sha1"), ("other", "sha1"), ("long", "sha256")]:
        made, bare = f"made-{name}", f"git/{name}.git"
        if not os.path.exists(made):
            git("init", "-q", "--object-format=" + kind, made)
            for number, branches in enumerate([["agent/old"], ["agent/side"], []]):
                with open(f"{made}/file", "w") as file:
                    file.writelines(f"line {line} of {number}\n" for line in range(3000))
                git("-C", made, "add", "file")
                git("-C", made, "commit", "-qm", str(number))
                for branch in branches:
                    git("-C", made, "branch", branch)
            for tag in ["v1", "agent-1"]:
                git("-C", made, "tag", tag, "HEAD~1")
            git("clone", "-q", "--bare", made, made + ".git")
            with open(f"{made}.git/config", "a") as file:
                file.write("[http]\n receivepack = true\n[receive]\n advertisePushOptions = true\n shallowUpdate = true\n certNonceSeed = seed\n")
        shutil.rmtree(bare, ignore_errors=True)
        shutil.copytree(made + ".git", bare)


def references():
    """Returns the references of these repositories, as the server has them."""
    return b"".join(
        b"%s %s" % (name.encode(), line)
        for name in ["pushed", "other", "long"]
        for line in subprocess.run(["git", "--git-dir", f"git/{name}.git", "show-ref", "-d"], stdout=subprocess.PIPE).stdout.splitlines(True)
    )


def form(name, given):
    """Writes what a client has sent in one of the forms in which servers show it."""
    headers = f"Accept: */*\nUser-Agent: a client of some length, so that a line ends in it\nAuthorization: {given}\nHost: allowed.test\n"
    return {
        "plain": headers.encode(),
        "base64-in-lines": base64.encodebytes(headers.encode()),
        "hexadecimal-with-spaces": headers.encode().hex(" ").encode(),
        "hexadecimal-with-colons": headers.encode().hex(":").encode(),
        "numbers-of-HTML": "".join(f"&#x{ord(one):04x};" for one in headers).encode(),
        "JSON-in-JSON": "".join(f"\\\\u{ord(one):04x}" for one in headers).encode(),
        "UTF-16": headers.encode("utf-16-le"),
    }[name]


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
        if path == "/stream":
            return self.stream()
        if path == "/tell":
            told.append(given)
            return self.say(b"\n", status=401 if "old" in given else 200)
        if path in ("/last", "/open/last"):
            return self.say(last.encode())
        if path.startswith("/open/"):
            return self.say(b"REACHED\n")
        if not is_known:
            return self.say(b"who are you?\n", status=401)
        last = given
        if path.startswith("/git/"):
            return self.git(path, body)
        if path == "/reset":
            for_pushes()
            return self.say(references())
        if path == "/references":
            return self.say(references())
        if path.startswith("/npm/hello"):
            if path.endswith(".tgz"):
                return self.say(TARBALL)
            return self.say(about_package(f"https://{self.headers['Host']}"), kind="application/json")
        if path.startswith("/simple/hello"):
            return self.say(WHEEL) if path.endswith(".whl") else self.say(LINK, kind="text/html")
        if path == "/mine/v1/chat/completions":
            words = json.loads(body)["stream"] and ["REA", "CH", "ED"]
            events = [json.dumps({"choices": [{"index": 0, "delta": {"content": word}}]}) for word in words]
            return self.say("".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode(), kind="text/event-stream")
        if path == "/away":
            return self.say(b"\n", status=307, more={"Location": "https://allowed.test:9444/open/a"})
        if path == "/mine/repeat":
            return self.say(body)
        if path == "/echo":
            return self.say(f"{given} {base64.b64encode(given.encode()).decode()} {given.encode().hex()}\n".encode())
        if path.startswith("/cut/"):
            return self.say(given[7:][:int(path[5:])].encode())
        if path.startswith("/form/"):
            wide = "; charset=utf-16" if path.endswith("UTF-16") else ""
            return self.say(form(path[6:], given), kind="text/plain" + wide)
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

    def stream(self):
        """Repeats for a while what the server was told last."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(44):
            line = f"data: {number} {told[-1] if told else ''}\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            time.sleep(0.5)
        self.wfile.write(b"0\r\n\r\n")

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
import aws_server, raw_server

raw_server.Raw.DIRECTORY = aws_server.Aws.DIRECTORY = DIRECTORY
for port, kind in [(9443, Forge), (9444, Forge), (9445, raw_server.Raw), (9446, aws_server.Aws)]:
    server = Server((ADDRESS, port), kind)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever).start()
# A server that takes connections and says nothing.
silent = socket.create_server((ADDRESS, 9448))
if os.path.exists(os.path.join(DIRECTORY, "streams.js")):
    for port, more in [(9456, ["both"]), (9457, []), (9458, ["both"])]:
        words = ["node", os.path.join(DIRECTORY, "streams.js"), DIRECTORY, ADDRESS, str(port), *more]
        subprocess.Popen(words, stdout=subprocess.PIPE).stdout.readline()
print("ready", flush=True)
