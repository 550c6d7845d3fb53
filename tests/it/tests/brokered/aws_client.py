"""Sends requests to the server of AWS: each is signed with the keys of the environment, then changed, and sent.

With `AWS_PLACE`, the requests go to that server, over HTTP/2.
"""
import datetime, hashlib, os, socket, ssl, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from aws_server import signature

HOST = os.environ.get("AWS_PLACE", "allowed.test:9446")
ID, KEY, SESSION = (os.environ[name] for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])


def exchange(head, body):
    return over_second_version(head, body) if "AWS_PLACE" in os.environ else over_first_version(head, body)


def over_second_version(head, body):
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    words = ["curl", "-sS", "-i", "-m", "20", "--http2", "--path-as-is", *(["-I"] if method == "HEAD" else ["-X", method]), f"https://{HOST}{target}"]
    for line in lines:
        if line.split(":")[0] not in ("Content-Length", "Connection"):
            words += ["-H", line]
    done = subprocess.run(words + (["--data-binary", "@-"] if body else []), input=body, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode("latin-1")


def over_first_version(head, body):
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    answer = b""
    try:
        with socket.create_connection(("allowed.test", 9446), timeout=9) as plain:
            with context.wrap_socket(plain, server_hostname="allowed.test") as stream:
                stream.sendall(head.encode() + body)
                while piece := stream.recv(65536):
                    answer += piece
    except OSError as error:
        answer += f"\n({error})".encode()
    return answer.decode("latin-1")


def send(method="GET", target="/a", body=b"", service="s3", region="eu-central-1", hashed="of the body", minutes=0, names=None,
         secret=KEY, id=ID, headers=(), without=(), change=lambda head: head, body_sent=None):
    """Signs a request and sends it with the changes that the caller makes after that."""
    date = (datetime.datetime.utcnow() + datetime.timedelta(minutes=minutes)).strftime("%Y%m%dT%H%M%SZ")
    of_body = hashlib.sha256(body).hexdigest()
    all = [("Host", HOST), ("X-Amz-Date", date), ("X-Amz-Security-Token", SESSION), *headers]
    payload = of_body if hashed in ("of the body", None) else hashed
    if hashed:
        all.append(("X-Amz-Content-Sha256", payload))
    listed = names or sorted(name.lower() for name, _ in all if name not in without)
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    made = signature(secret, date, scope, method, target, all, listed, payload)
    given = f"AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={';'.join(listed)}, Signature={made}"
    sent = body if body_sent is None else body_sent
    lines = [f"{name}: {value}" for name, value in [*all, ("Authorization", given), ("Content-Length", len(sent)), ("Connection", "close")]]
    return exchange(change(f"{method} {target} HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n"), sent)


def put(old, new):
    return lambda head: head.replace(old, new)


CASES = {
    "reads": lambda: send(),
    "asks with a query": lambda: send(target="/list?prefix=a%2Fb&max-keys=2&acl"),
    "puts a body": lambda: send("PUT", "/mine/a", b"content", headers=[("Content-Type", "text/plain"), ("x-amz-acl", "private")]),
    "puts a body without a hash of it": lambda: send("PUT", "/mine/a", b"content", hashed="UNSIGNED-PAYLOAD"),
    "puts a body with a trailer": lambda: send("PUT", "/mine/a", b"7\r\ncontent\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", hashed="STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
    "posts to a service that hashes the body itself": lambda: send("POST", "/mine/", b"Action=GetCallerIdentity&Version=2011-06-15", service="sts", hashed=None),
    "reads a path with a space": lambda: send(target="/a%20b", service="sts", hashed=None),
    "a repeated answer": lambda: send(target="/echo"),
    "another path": lambda: send(change=put("GET /a ", "GET /b ")),
    "another method": lambda: send(change=put("GET /a ", "HEAD /a ")),
    "another query": lambda: send(target="/a?x=1", change=put("x=1", "x=2")),
    "another body": lambda: send("POST", "/mine/", b"Action=List", service="sts", hashed=None, body_sent=b"Action=Drop"),
    "another header": lambda: send(headers=[("x-amz-acl", "private")], change=put("acl: private", "acl: public-read")),
    "a header of AWS that is not signed": lambda: send(headers=[("x-amz-acl", "private")], without=["x-amz-acl"]),
    "a header of AWS that is added": lambda: send(change=put("Connection:", "x-amz-tagging: a=b\r\nConnection:")),
    "a host that is not signed": lambda: send(without=["Host"]),
    "another host": lambda: send(change=put(f"Host: {HOST}", "Host: evil.test")),
    "another host, signed": lambda: send(names=["host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"], change=put(f"Host: {HOST}", f"Host: {HOST}\r\nHost: evil.test")),
    "another region": lambda: send(region="us-east-1"),
    "another service": lambda: send(service="iam"),
    "a scope that is changed": lambda: send(change=put("eu-central-1/s3", "eu-central-1/sts")),
    "an old signature": lambda: send(minutes=-20),
    "a signature of tomorrow": lambda: send(minutes=24 * 60),
    "a list that names a header twice": lambda: send(change=put("=host;", "=host;host;")),
    "a list that names another header": lambda: send(change=put("=host;", "=absent;host;")),
    "two signatures": lambda: send(change=put("Connection:", "Authorization: x\r\nConnection:")),
    "another algorithm": lambda: send(change=put("AWS4-HMAC-SHA256 C", "AWS4-ECDSA-P256-SHA256 C")),
    "pieces that are signed": lambda: send("PUT", "/mine/a", b"x", hashed="STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
    "a part of an object": lambda: send(headers=[("Range", "bytes=0-9")]),
    "a presigned URL": lambda: send(target=f"/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={ID}%2F20260101%2Feu-central-1%2Fs3%2Faws4_request"),
    "somebody else's token": lambda: send(change=put(SESSION, "somebody-else")),
    "the secret of somebody else": lambda: send(secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "another path than `for` covers": lambda: send("PUT", "/theirs/a", b"x"),
    "the secret in the body": lambda: send("PUT", "/mine/a", KEY.encode()),
    "the secret in a body that is hashed": lambda: send("POST", "/mine/", KEY.encode(), service="sts", hashed=None),
    "the token in the body": lambda: send("PUT", "/mine/a", SESSION.encode()),
    "the id in the body": lambda: send("PUT", "/mine/a", ID.encode()),
    "the secret in the query": lambda: send(target="/a?k=" + KEY),
    "the secret in a header": lambda: send(headers=[("x-amz-meta-key", KEY)]),
    "the id without a signature": lambda: exchange(f"GET /a?id={ID} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n", b""),
    "the id in another scheme": lambda: exchange(f"GET /a HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {ID}\r\nConnection: close\r\n\r\n", b""),
    "the keys of another account, with the placeholder of the token": lambda: send(id="AKIAOTHER0OTHER0OTHE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
}
for name, case in CASES.items():
    print(f"<{name}>{case()}</{name}>", flush=True)
