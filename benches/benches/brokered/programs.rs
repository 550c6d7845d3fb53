//! Real programs that send many requests on one connection, each started for one round.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Requests of one round.
pub(crate) const REQUESTS: usize = 500;
/// The programs, as the orders name them.
pub(crate) const ALL: [&str; 3] = ["curl", "node", "python"];

const NODE: &str = "
const [address, count] = process.argv.slice(1);
const headers = { authorization: `Bearer ${process.env.BENCH_TOKEN}` };
for (let number = 0; number < Number(count); number += 1) {
  const answer = await fetch(address, { headers });
  if (!(await answer.text()).endsWith('the end\\n')) throw new Error(`${answer.status}`);
}";

const PYTHON: &str = "
import http.client, os, ssl, sys
host, count = sys.argv[1].split('/')[2], int(sys.argv[2])
trust = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])
connection = http.client.HTTPSConnection(host, context=trust)
headers = {'Authorization': 'Bearer ' + os.environ.get('BENCH_TOKEN', '')}
for number in range(count):
    connection.request('GET', '/small', headers=headers)
    answer = connection.getresponse()
    if not answer.read().endswith(b'the end\\n'):
        sys.exit(str(answer.status))
";

/// Runs a program, which sends [`REQUESTS`] requests with this token to a port.
pub(crate) fn run(name: &str, port: u16, token: &str) {
    let (address, count) = (format!("https://127.0.0.1:{port}/small"), REQUESTS.to_string());
    let done = match name {
        "curl" => curl(&address, token),
        "node" => {
            let words = ["--input-type=module", "-e", NODE, &address, &count];
            Command::new("node").args(words).status()
        }
        _ => Command::new("python3").args(["-c", PYTHON, &address, &count]).status(),
    };
    assert!(done.is_ok_and(|status| status.success()), "{name}");
}

/// Sends the requests with one command of curl, which reuses its connection.
fn curl(address: &str, token: &str) -> std::io::Result<std::process::ExitStatus> {
    let mut options = format!("silent\nshow-error\nfail\nheader = \"Authorization: Bearer {token}\"\n");
    for _ in 0..REQUESTS {
        writeln!(options, "url = {address}\noutput = /dev/null").expect("a text");
    }
    let mut curl = Command::new("curl").args(["--config", "-"]).stdin(Stdio::piped()).spawn()?;
    curl.stdin.take().expect("its input").write_all(options.as_bytes())?;
    curl.wait()
}
