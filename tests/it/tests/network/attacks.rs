//! Attacks on the network, and connections that must work.

/// One attack of the corpus.
pub(super) struct Attack {
    pub(super) row: u16,
    pub(super) what: &'static str,
    pub(super) script: &'static str,
    /// The output that shows success.
    pub(super) reached: &'static str,
}

const fn attack(row: u16, what: &'static str, script: &'static str, reached: &'static str) -> Attack {
    Attack { row, what, script, reached }
}

/// Shell functions for the scripts.
pub(super) const TOOLS: &str = r#"
get() { curl -sS --max-time 10 "$@"; }
# Sends its second argument to a host and port, and prints what comes back.
raw() { exec 3<>"/dev/tcp/$1" && printf "$2" >&3 && timeout 3 cat <&3; exec 3<&-; }
hello() { openssl s_client "$@" </dev/null 2>/dev/null | grep -q 'BEGIN CERT' && echo REACHED; }
# What begins TLS by hand: a hello that names its first argument.
HELLO=$(cat <<'END'
import os, socket, sys
def vector(count, content): return len(content).to_bytes(count, "big") + content
def extension(kind, content): return kind.to_bytes(2, "big") + vector(2, content)
KEYS = b"\0\x1d" + vector(2, os.urandom(32))
def hello(name, keys, more=b""):
    extensions = (extension(0, vector(2, b"\0" + vector(2, name))) + extension(43, vector(1, b"\3\4")) + more
        + extension(10, vector(2, b"\0\x1d")) + extension(13, vector(2, b"\4\3\x08\4")) + extension(51, vector(2, keys)))
    body = b"\3\3" + b"r" * 32 + vector(1, b"s" * 32) + vector(2, b"\x13\1") + vector(1, b"\0") + vector(2, extensions)
    return b"\x16\3\1" + vector(2, b"\1" + vector(3, body))
server = socket.create_connection(("allowed.test", 443), 5)
server.settimeout(5)
stream = server.makefile("rb")
def record():
    head = stream.read(5)
    return head[0], stream.read(int.from_bytes(head[3:], "big"))
END
)
by_hand() { { printf '%s\n' "$HELLO"; cat; } > by_hand.py; python3 by_hand.py "$1"; }
# Has the server ask for a second hello, which names its argument.
second() { by_hand "$1" <<'END'
server.sendall(hello(b"allowed.test", b""))
kind, content = record()
assert kind == 22 and content[6:10].hex() == "cf21ad74", "the server wants no second hello"
server.sendall(b"\x14\3\3\0\1\1" + hello(sys.argv[1].encode(), KEYS))
while record()[0] != 22: pass
print("REACHED")
END
}
# Says that the true hello is encrypted (ECH), or nothing of the kind.
encrypted() { by_hand "$1" <<'END'
server.sendall(hello(b"allowed.test", KEYS, extension(0xfe0d, bytes(64)) if sys.argv[1] == "yes" else b""))
if record()[0] == 22: print("REACHED")
END
}
# Speaks to the proxy by hand: what is before the token, the token as it is or encoded, and what is behind it.
to_proxy() { t=${PORTCULLIS_PROXY#http://}; raw "127.0.0.1/${t##*:}" "$1$2$3"; }
token() { t=${PORTCULLIS_PROXY#*portcullis:}; printf '%s' "${t%%@*}"; }
encoded() { printf 'portcullis:%s' "$(token)" | base64 -w0; }
"#;

const ANY: &str = "REACHED";

#[rustfmt::skip]
pub(super) const ATTACKS: &[Attack] = &[
    attack(89, "past every proxy", "get --noproxy '*' http://203.0.113.2/", ANY),
    attack(93, "a denied host", "get http://evil.test/", ANY),
    attack(93, "a denied host over TLS", "hello -connect evil.test:443 -servername evil.test", ANY),
    attack(94, "the address of a denied host", "get http://203.0.113.2/", ANY),
    attack(94, "the address of an allowed host", "get http://203.0.113.1/", ANY),
    attack(94, "the address under the allowed name", "get --resolve allowed.test:80:203.0.113.2 http://allowed.test/", "REACHED 203.0.113.2"),
    attack(95, "a number", "get http://3405803778/", ANY),
    attack(95, "hexadecimal", "get http://0xcb007102/", ANY),
    attack(95, "octal", "get http://0313.0.0161.2/", ANY),
    attack(95, "three parts", "get http://203.0.28930/", ANY),
    attack(96, "an address in an address", "get 'http://[::ffff:203.0.113.2]/'", ANY),
    attack(97, "upper case and a dot", "get http://EVIL.TEST./", ANY),
    attack(98, "the allowed name as a user", "get http://allowed.test@evil.test/", ANY),
    attack(99, "a name that looks like an allowed one", "get http://xn--llowed-2nf.test/", ANY),
    attack(100, "an allowed name as a part", "get http://notallowed.test/", ANY),
    attack(100, "an allowed name in front", "get http://allowed.test.evil.test/", ANY),
    attack(101, "another name in the target", r"raw allowed.test/80 'GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n'", ANY),
    attack(101, "another name in the header", "get -H 'Host: evil.test' http://allowed.test/", ANY),
    attack(102, "another name in TLS", "hello -connect allowed.test:443 -servername evil.test", ANY),
    attack(102, "another name in the second hello", "second evil.test", ANY),
    attack(101, "other white space", r"raw allowed.test/80 'GET\t/\x0cHTTP/1.1\r\nHost: evil.test\r\n\r\n'", "as evil.test"),
    attack(101, "a control byte in the line", r"raw allowed.test/80 'PROPFIND /\x01 HTTP/1.1\r\nHost: evil.test\r\n\r\n'", "as evil.test"),
    attack(101, "a method without letters", r"raw allowed.test/80 '! / HTTP/1.1\r\nHost: evil.test\r\n\r\n'", "as evil.test"),
    attack(101, "words of another proxy", r"raw allowed.test/80 'PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n'", "as evil.test"),
    attack(103, "a name that is encrypted", "encrypted yes", ANY),
    attack(103, "no name in TLS", "hello -connect allowed.test:443 -noservername", ANY),
    attack(104, "a port that no rule names", "raw allowed.test/22 ''", ANY),
    attack(105, "a tunnel", r"raw allowed.test/80 'CONNECT evil.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n'", ANY),
    attack(106, "a second request", r"raw allowed.test/80 'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n'", "as evil.test"),
    attack(107, "two lengths", r"raw allowed.test/80 'POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'", ANY),
    attack(107, "a folded line", r"raw allowed.test/80 'GET / HTTP/1.1\r\nHost: allowed.test\r\nX: y\r\n z\r\n\r\n'", ANY),
    attack(107, "bare line feeds", r"raw allowed.test/80 'GET / HTTP/1.1\nHost: allowed.test\n\n'", ANY),
    attack(108, "NUL in the name", r"raw allowed.test/80 'GET / HTTP/1.1\r\nHost: allowed.test\0.evil.test\r\n\r\n'", ANY),
    attack(109, "an allowed name that leads to this machine", "get http://own.test:8000/", ANY),
    attack(109, "to its loopback", "get http://loopback.test:8000/", ANY),
    attack(109, "to the metadata service", "get http://metadata.test/", ANY),
    attack(109, "to a private network", "get http://private.test/", ANY),
    attack(110, "a wildcard that leads there", "get http://a.wild.test/", ANY),
    attack(111, "a name that changes", "get http://flips.test/; get http://flips.test/", "REACHED 169.254"),
    attack(112, "the loopback of this machine", "get http://127.0.0.1:8000/", ANY),
    attack(112, "the other loopback", "get 'http://[::1]:8000/'", ANY),
    attack(112, "by its name", "get http://localhost:8000/", ANY),
    attack(113, "where an allowed host sends it", "get -L http://allowed.test/redirect", "REACHED 203.0.113.2"),
    attack(114, "a proxy of its own", "http_proxy=http://203.0.113.2:80 get http://allowed.test/", ANY),
    attack(114, "no proxy", "NO_PROXY='*' no_proxy='*' get http://evil.test/", ANY),
    attack(89, "metadata by its address", "get http://169.254.169.254/", ANY),
];

/// Attacks without a control: no server answers them in the test network, or programs refuse them.
#[rustfmt::skip]
pub(super) const WITHOUT_CONTROL: &[Attack] = &[
    attack(96, "a zone", "get 'http://[fe80::1%25lo]/'", ANY),
    attack(96, "translation", "get 'http://[64:ff9b::cb00:7102]/'", ANY),
    attack(98, "an escaped name", "get 'http://evil.test%23.allowed.test/'", ANY),
    attack(98, "a backslash", r"get 'http://evil.test\.allowed.test/'", ANY),
    attack(107, "HTTP/2 in the clear", r"raw allowed.test/80 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'", ANY),
    attack(92, "a name, asked of the proxy", "get -x $PORTCULLIS_PROXY http://stolen.evil.test/", ANY),
    attack(93, "a denied host through the proxy", "get -x $PORTCULLIS_PROXY http://evil.test/", ANY),
    attack(93, "a denied host through a tunnel", "get -p -x $PORTCULLIS_PROXY http://evil.test/", ANY),
    attack(93, "a denied host through SOCKS", "get -x socks5h://${PORTCULLIS_PROXY#http://} http://evil.test/", ANY),
    attack(94, "an address through SOCKS", "get -x socks5h://${PORTCULLIS_PROXY#http://} http://203.0.113.2/", ANY),
    attack(101, "another name in the header, through the proxy", "get -x $PORTCULLIS_PROXY -H 'Host: evil.test' http://allowed.test/", ANY),
    attack(102, "another name inside a tunnel", "get -p -x $PORTCULLIS_PROXY -H 'Host: evil.test' http://allowed.test/", ANY),
    attack(104, "another port through a tunnel", "get -p -x $PORTCULLIS_PROXY http://allowed.test:22/", ANY),
    attack(108, "NUL in the name for SOCKS", r"to_proxy '\x05\x01\x02\x01\x0aportcullis\x20' $(token) '\x05\x01\x00\x03\x16allowed.test\x00evil.test\x00\x50GET / HTTP/1.0\r\n\r\n'", ANY),
    attack(108, "NUL in the name for a tunnel", r"to_proxy 'CONNECT allowed.test\x00.evil.test:80 HTTP/1.1\r\nHost: allowed.test\r\nProxy-Authorization: Basic ' $(encoded) '\r\n\r\nGET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n'", ANY),
    attack(109, "the metadata service through the proxy", "get -x $PORTCULLIS_PROXY http://metadata.test/", ANY),
    attack(115, "no token", "get -x http://${PORTCULLIS_PROXY#*@} http://allowed.test/", ANY),
    attack(115, "another token", "get -x http://portcullis:0123456789abcdef@${PORTCULLIS_PROXY#*@} http://allowed.test/", ANY),
    attack(115, "no token for SOCKS", "get -x socks5h://${PORTCULLIS_PROXY#*@} http://allowed.test/", ANY),
    attack(115, "the listeners themselves", "for p in $(tail -n +2 /proc/net/tcp | cut -c16-19); do raw 127.0.0.1/$((16#$p)) 'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'; done", ANY),
];

/// Connections that must succeed; each script prints REACHED.
#[rustfmt::skip]
pub(super) const HONEST: &[(&str, &str)] = &[
    ("curl", "get http://allowed.test/"),
    ("curl over TLS", "curl -sk https://allowed.test/ | grep -q s_server && echo REACHED"),
    ("a second hello", "second allowed.test"),
    ("a wildcard", "get http://sub.allowed.test/"),
    ("wget", "wget -qO- http://allowed.test/"),
    ("bash", r"raw allowed.test/80 'GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n'"),
    ("two requests on one connection", "get http://allowed.test/ http://allowed.test/ | grep -c REACHED | grep -q 2 && echo REACHED"),
    ("perl", "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr => q(allowed.test), PeerPort => 80); print $s qq(GET / HTTP/1.0\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n); print <$s>'"),
    ("a server that speaks first", "raw sub.allowed.test/22 ''"),
    ("any protocol", r"raw sub.allowed.test/7 'REACHED\n'"),
    ("a chunked upload", "echo x | get -H 'Transfer-Encoding: chunked' --data-binary @- http://allowed.test/"),
    ("getent", "getent ahosts allowed.test | grep -q STREAM && echo REACHED"),
    ("the proxy", "get -x $PORTCULLIS_PROXY http://allowed.test/"),
    ("a tunnel", "get -p -x $PORTCULLIS_PROXY http://allowed.test/"),
    ("TLS through a tunnel", "curl -sk -x $PORTCULLIS_PROXY https://allowed.test/ | grep -q s_server && echo REACHED"),
    ("SOCKS", "get -x socks5h://${PORTCULLIS_PROXY#http://} http://allowed.test/"),
    ("a tunnel by hand", r"to_proxy 'CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test\r\nProxy-Authorization: Basic ' $(encoded) '\r\n\r\nGET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n'"),
    ("SOCKS by hand", r"to_proxy '\x05\x01\x02\x01\x0aportcullis\x20' $(token) '\x05\x01\x00\x03\x0callowed.test\x00\x50GET / HTTP/1.0\r\nHost: allowed.test\r\nConnection: close\r\n\r\n'"),
    ("TLS by hand", "encrypted no"),
    ("python", "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://allowed.test/\").read())'"),
    ("node", "node -e 'fetch(\"http://allowed.test/\").then(r => r.text()).then(console.log)'"),
    ("git", "git -c http.proxy= ls-remote http://allowed.test/r.git 2>&1 | grep -q 'not valid' && echo REACHED"),
];
