# Servers of files that are made here, and a data base that says no.
with open("file", "w") as file:
    file.write("REACHED by a file\n")
make_repository("repo.git")
git("-C", "repo.git", "update-server-info")
os.makedirs("simple/hello")
with open("simple/hello/hello-1.0-py3-none-any.whl", "wb") as file:
    file.write(WHEEL)
with open("simple/hello/index.html", "wb") as file:
    file.write(LINK)


class Files(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/npm/hello"):
            if self.path.endswith(".tgz"):
                return self.say("application/octet-stream", TARBALL)
            kind = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
            return self.say("application/json", about_package(f"{kind}://{self.headers['Host']}"))
        return super().do_GET()

    def say(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class DataBase(socketserver.BaseRequestHandler):
    """Speaks as much of PostgreSQL's protocol as it takes to refuse a user."""

    def handle(self):
        while True:
            length, code = (int.from_bytes(self.request.recv(4), "big") for _ in range(2))
            self.request.recv(max(0, length - 8))
            if code == 196608:
                break
            self.request.sendall(b"N")
        fields = b"SFATAL\0C28000\0MREACHED by psql\0\0"
        self.request.sendall(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def serve(port, handler, certificate=None):
    server = Server((ADDRESS, port), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(DIRECTORY, "certificate.pem"), os.path.join(DIRECTORY, "key.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever).start()


def secure_shell(port):
    """An ordinary process that gives out the repository to whoever has the key, whatever it is asked for."""
    sshd, number = open(os.path.join(DIRECTORY, "sshd")).read(), os.getuid() or 65534
    key = os.path.join(DIRECTORY, "client_key")
    for path in [os.path.join(ROOT, "host_key"), key]:
        if not os.path.exists(path):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    os.chown("host_key", number, number)
    with open("passwd", "w") as file:
        file.write(f"git:x:{number}:{number}::{ROOT}:/bin/sh\n")
    settings = {
        "Port": port, "ListenAddress": ADDRESS, "HostKey": ROOT + "/host_key", "AuthorizedKeysFile": key + ".pub", "StrictModes": "no",
        "PidFile": "none", "UsePAM": "no", "ForceCommand": f"git -c safe.directory='*' upload-pack {ROOT}/repo.git",
    }
    with open("sshd_config", "w") as file:
        file.writelines(f"{name} {value}\n" for name, value in settings.items())
    drop = f"setpriv --reuid={number} --regid={number} --clear-groups" if os.getuid() == 0 else "setpriv"
    line = f"mount --bind {ROOT}/passwd /etc/passwd && exec {drop} --ambient-caps=-all --inh-caps=-all '{sshd}' -D -e -f {ROOT}/sshd_config"
    subprocess.Popen(["unshare", "--mount", "sh", "-c", line], stdout=subprocess.DEVNULL)


serve(8081, Files)
serve(8443, Files, certificate=True)
serve(5432, DataBase)
secure_shell(2222)
daemon = ["git", "daemon", "--reuseaddr", "--export-all", "--base-path=" + ROOT, "--listen=" + ADDRESS, "--port=9418"]
subprocess.Popen(daemon, stdout=subprocess.DEVNULL)
for port in [9418, 2222]:
    while socket.socket().connect_ex((ADDRESS, port)) != 0:
        time.sleep(0.02)
print("ready", flush=True)
