//! The memory of the processes of a scene, searched from outside.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use portcullis_it::{Scene, processes};

/// Searches the processes that the first line names for the bytes on the others, in hexadecimal, and prints how often
/// each process has one of them.
const SEARCH: &str = "\
import sys\n\
numbers, forms = sys.stdin.readline().split(), [bytes.fromhex(line) for line in sys.stdin]\n\
for pid in numbers:\n\
\x20   found = spans = 0\n\
\x20   try: maps = open(f'/proc/{pid}/maps').readlines()\n\
\x20   except (FileNotFoundError, ProcessLookupError): continue\n\
\x20   for line in maps:\n\
\x20       span, rights = line.split()[:2]\n\
\x20       if 'r' not in rights or '[v' in line: continue\n\
\x20       low, high = (int(end, 16) for end in span.split('-'))\n\
\x20       try:\n\
\x20           with open(f'/proc/{pid}/mem', 'rb', 0) as memory:\n\
\x20               memory.seek(low)\n\
\x20               piece = memory.read(high - low)\n\
\x20       except OSError: continue\n\
\x20       found += sum(form in piece for form in forms)\n\
\x20       spans += 1\n\
\x20   if spans: print(pid, found)\n";

/// A process whose memory was searched.
#[derive(Debug)]
pub(super) struct SearchedProcess {
    /// Whether it runs outside the sandbox.
    pub(super) is_outside: bool,
    /// How many spans of its memory have one of the forms.
    pub(super) found: usize,
}

/// Searches all processes of a scene for any of `forms`.
pub(super) fn search(scene: &Scene, forms: &[&[u8]]) -> Result<Vec<SearchedProcess>> {
    let own = fs::read_link("/proc/self/ns/pid")?;
    let all = processes::of_scene(scene)?;
    let is_outside = |id: u32| fs::read_link(format!("/proc/{id}/ns/pid")).is_ok_and(|space| space == own);
    let numbers: Vec<String> = all.iter().map(|one| one.id.to_string()).collect();
    let mut input = numbers.join(" ") + "\n";
    for form in forms {
        input.extend(form.iter().map(|byte| format!("{byte:02x}")));
        input.push('\n');
    }
    let mut python =
        Command::new("python3").args(["-c", SEARCH]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    python.stdin.take().context("a pipe")?.write_all(input.as_bytes())?;
    let output = python.wait_with_output()?;
    ensure!(output.status.success(), "the search failed");
    let text = String::from_utf8(output.stdout)?;
    text.lines()
        .map(|line| {
            let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
            let [id, found] = numbers.as_slice() else { bail!("the search printed {line}") };
            Ok(SearchedProcess { is_outside: is_outside(*id), found: usize::try_from(*found)? })
        })
        .collect()
}
