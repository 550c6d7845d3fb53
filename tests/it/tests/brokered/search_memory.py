"""Searches the memory of a host and of all that it started: `HOST_PID CERTIFICATES`, with the secret on standard input.

Prints how often the secret and the key of the session's authority are in the host, then the same for all other
processes together, and the number of those.
"""
import base64, os, re, sys

host, certificates, secret = int(sys.argv[1]), sys.argv[2], sys.stdin.read().encode()


def spans(pid):
    """Returns the lines about a process's memory; none if it has ended."""
    try:
        with open(f"/proc/{pid}/maps") as maps:
            return maps.readlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def memory(pid):
    """Yields the readable memory of a process, in pieces that overlap."""
    lines = spans(pid)
    if not lines:
        return
    with open(f"/proc/{pid}/mem", "rb", 0) as opened:
        for line in lines:
            span, rights, *rest = line.split(None, 5)
            if "r" not in rights or "[v" in line:
                continue
            low, high = (int(end, 16) for end in span.split("-"))
            while low < high:
                try:
                    opened.seek(low)
                    piece = opened.read(min(high - low, 1 << 24))
                except OSError:
                    break
                if not piece:
                    break
                yield piece
                low += len(piece) if len(piece) < 4096 or low + len(piece) >= high else len(piece) - 2048


def parents():
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                found[int(pid)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    return found


def started_by(pid):
    known = parents()
    below, found = [pid], []
    while below:
        below = [child for child, parent in known.items() if parent in below]
        found += below
    return found


text = open(certificates).read()
last = re.findall("-----BEGIN CERTIFICATE-----(.*?)-----END", text, re.S)[-1]
der = base64.b64decode("".join(last.split()))
# The public key of a certificate on the curve P-256, and the private key before it in PKCS #8.
public = re.search(rb"\x03\x42\x00\x04(.{64})", der, re.S).group(1)
private = re.compile(rb"\x04\x20(.{32})\xa1\x44\x03\x42\x00\x04" + re.escape(public), re.S)
keys = {match for piece in memory(host) for match in private.findall(piece)}
forms = [secret, *keys, *(key[::-1] for key in keys)]
for encoded in (base64.b64encode(b"x" * skipped + secret) for skipped in range(3)):
    forms.append(encoded[4:-4])


def count(pid, wanted):
    return sum(piece.count(form) for piece in memory(pid) for form in wanted)


others = started_by(host)
others = [pid for pid in others if spans(pid)]
print(count(host, [secret]), sum(count(host, [key]) for key in keys), sum(count(pid, forms) for pid in others), len(others))
