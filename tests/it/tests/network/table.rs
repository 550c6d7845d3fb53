//! The view that programs have of the network: every name gets an address at once, and only connections leave.

use anyhow::{Result, ensure};
use portcullis_it::{Scene, Tools, User, World};

use super::{PROGRAM, each};

as_each_user!(names_and_other_traffic_are_as_the_table_says);

const ALLOW: &str = r#"{ "allowedDomains": ["allowed.test", "[2001:db8:1::1]:80"], "deniedDomains": [] }"#;

/// A name, a script, and its whole output.
const TABLE: &[(&str, &str, &str)] = &[
    ("dig", "dig +short allowed.test | sed 's/^198[.]18[.].*/an address/'", "an address"),
    (
        "dig, of a server elsewhere",
        "dig +short @8.8.8.8 allowed.test | sed 's/^198[.]18[.].*/an address/'",
        "an address",
    ),
    (
        "dig over TCP",
        "dig +short +tcp @8.8.8.8 allowed.test | sed 's/^198[.]18[.].*/an address/'",
        "an address",
    ),
    ("dig, from the address to the name", "dig +short -x $(dig +short allowed.test)", "allowed.test."),
    ("dig for text", "dig TXT stolen.evil.test | grep -o 'status: [A-Z]*'", "status: REFUSED"),
    ("dig for mail", "dig MX stolen.evil.test | grep -o 'status: [A-Z]*'", "status: REFUSED"),
    (
        "dig for the other family",
        "dig AAAA allowed.test | grep -o 'status: [A-Z]*\\|ANSWER: [0-9]'",
        "status: NOERROR\nANSWER: 0",
    ),
    (
        "dig for keys that hide names",
        "dig HTTPS allowed.test | grep -o 'status: [A-Z]*\\|ANSWER: [0-9]'",
        "status: NOERROR\nANSWER: 0",
    ),
    ("dig for a name of one label", "dig wpad | grep -o 'status: [A-Z]*'", "status: NXDOMAIN"),
    ("what names the name service", "cat /etc/resolv.conf", "nameserver 127.0.0.1\noptions ndots:0"),
    ("a name that the host would complete", "getent hosts sub || echo none", "none"),
    (
        "the library",
        "getent ahostsv4 allowed.test | sed -n 's/^198[.]18[.].*STREAM.*/an address/p'",
        "an address",
    ),
    (
        "HTTP/3, which falls back at once",
        "timeout 5 python3 -c 'import socket\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         s.connect((\"allowed.test\", 443))\n\
         s.send(b\"x\")\n\
         try: s.recv(1)\n\
         except ConnectionRefusedError: print(\"refused\")'",
        "refused",
    ),
    (
        "an IPv6 address that is allowed",
        "curl -sSg 'http://[2001:db8:1::1]/'",
        "REACHED 2001:db8:1::1 as [2001:db8:1::1]",
    ),
    (
        "one that nobody named",
        "curl -sSg 'http://[2001:db8:1::2]/' 2>&1 | grep -o 'Failed to connect'",
        "Failed to connect",
    ),
    (
        "a server that refuses",
        "curl -sS http://allowed.test:9/ | grep -o 'cannot be reached.*refused'",
        "cannot be reached: Connection refused",
    ),
    (
        "an address that stands for no name",
        // The connection is reset, before or after connect(2) returns.
        "curl -s http://198.18.77.77/ || echo refused",
        "refused",
    ),
];

fn names_and_other_traffic_are_as_the_table_says(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let folders = std::env::join_paths(Tools::find()?.folders(&["dig"])?)?;
    let path = format!("export PATH=\"$PATH:{}\"; ", folders.to_string_lossy());
    let scripts: Vec<String> = TABLE.iter().map(|(_, script, _)| path.clone() + script).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let outputs = each(&scripts, |script| world.run(ALLOW, script))?;
    for ((what, _, expected), output) in TABLE.iter().zip(outputs) {
        ensure!(output.trim_end() == *expected, "{what}: {output}");
    }
    // Only names with an allowed connection were looked up, and only after it was allowed.
    let seen = world.seen()?;
    ensure!(!seen.contains("evil") && !seen.contains("wpad"), "{seen}");
    // The host's own search domain is added to none of them; without Portcullis it is tried first.
    ensure!(!seen.contains("near.test"), "{seen}");
    world.control("getent hosts sub.allowed.test")?;
    ensure!(world.seen()?.contains("DNS sub.allowed.test.near.test"), "control: {}", world.seen()?);
    Ok(())
}
