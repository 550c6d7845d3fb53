"""Sends data to a host with another key than the declared one, in forty ways, and prints what is answered."""
import base64, http.client, os, ssl

KEY = "sk-ant-api03-0123456789abcdefABCDEFghijklmnopqrstuvwxyz0123456789abcd"
BASIC = "Basic " + base64.b64encode(b"other:password").decode()
HEADERS = [
    ("Authorization", "Bearer other-account"), ("Authorization", BASIC), ("Authorization", "token other"),
    ("Authorization", "Digest username=other"), ("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE"),
    ("Proxy-Authorization", BASIC), ("Cookie", "session=other"), ("Cookie", "a=b"),
    *((name, "other") for name in [
        "X-Api-Key", "Api-Key", "ApiKey", "Private-Token", "Job-Token", "Deploy-Token", "X-Auth-Token", "X-Access-Token",
        "X-Amz-Security-Token", "X-Goog-Api-Key", "X-Csrf-Token", "X-Secret", "X-Password", "X-Vault-Token",
    ]),
    ("X-Note", KEY),
]
QUERIES = [
    "key=other", "api_key=other", "access_token=other", "token=other", "sig=other", "X-Amz-Credential=other",
    "X-Goog-Signature=other", "auth=other", "password=other", "client_secret=other", "b=c;private_token=other", "%6bey=other",
    "jwt=other", "x=" + KEY,
]
BODIES = [("POST", "data"), ("GET", "token=other"), ("PUT", "data")]


def ways():
    for number, (name, value) in enumerate(HEADERS):
        yield "GET", f"/open/way-{number}", {name: value}, None
    for number, query in enumerate(QUERIES, len(HEADERS)):
        yield "GET", f"/open/way-{number}?{query}", {}, None
    for number, (method, body) in enumerate(BODIES, len(HEADERS) + len(QUERIES)):
        yield method, f"/open/way-{number}", {}, body


context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
for method, target, headers, body in [*ways(), ("GET", "/open/plain", {"Accept": "*/*"}, None)]:
    there = http.client.HTTPSConnection("allowed.test", 9444, context=context, timeout=9)
    there.request(method, target, body=body, headers=headers)
    print(target.split("?")[0], there.getresponse().read().decode().strip(), flush=True)
    there.close()
