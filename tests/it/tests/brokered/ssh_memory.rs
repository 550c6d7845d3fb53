//! The memory of every process of a command, searched for the user's key for ssh.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Scene, User, World, processes};

use super::ssh::{FENCE, OwnSsh, PREFIX, run_with, settings};
use super::{before, folders};
use crate::network::PROGRAM;

as_each_user!(nothing_of_the_key_for_ssh_is_in_the_memory_of_a_command);

/// Searches the processes that the first line names for the text on the next, and prints how often each has it.
const SEARCH: &str = "\
import sys\n\
numbers, text = sys.stdin.readline().split(), sys.stdin.read().strip().encode()\n\
for pid in numbers:\n\
\x20   found = spans = 0\n\
\x20   try: lines = open(f'/proc/{pid}/maps').readlines()\n\
\x20   except (FileNotFoundError, ProcessLookupError): continue\n\
\x20   for line in lines:\n\
\x20       span, rights = line.split()[:2]\n\
\x20       if 'r' not in rights or '[v' in line: continue\n\
\x20       low, high = (int(end, 16) for end in span.split('-'))\n\
\x20       try:\n\
\x20           with open(f'/proc/{pid}/mem', 'rb', 0) as memory:\n\
\x20               memory.seek(low)\n\
\x20               found += text in memory.read(high - low)\n\
\x20       except OSError: continue\n\
\x20       spans += 1\n\
\x20   if spans: print(pid, found)\n";

/// The program outside keeps the key in its memory, so that the search can find it there.
const FIRST: &str = "KEY=$(sed -n 3p \"$OWN/../world/client_key\")\n\
                     /usr/bin/ssh -F \"$OWN/config\" \"$@\"; status=$?; : \"$KEY\"; exit $status\n";

fn nothing_of_the_key_for_ssh_is_in_the_memory_of_a_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = before(&folders()?)
        + PREFIX
        + "git ls-remote $S/git/repo.git && touch there\n\
           git ls-remote $S/git/hang.git & while [ ! -e stop ]; do sleep 0.1; done; kill %1; wait\n";
    let ssh = OwnSsh { first: FIRST, ..OwnSsh::default() };
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run_with(&world, &scene, (&settings(FENCE, false), ssh), &script));
        let found = while_it_runs(&scene);
        scene.write(&scene.project().join("stop"), "")?;
        let finished = running.join().ok().context("the run panicked")??;
        let found = found.with_context(|| format!("{finished:#?}"))?;
        let (outside, inside): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.is_outside);
        ensure!(outside.iter().any(|one| one.found > 0), "the control: {outside:?}");
        ensure!(inside.len() >= 3 && inside.iter().all(|one| one.found == 0), "{inside:?}");
        Ok(())
    })
}

#[derive(Debug)]
struct Searched {
    is_outside: bool,
    found: usize,
}

fn while_it_runs(scene: &Scene) -> Result<Vec<Searched>> {
    let there = scene.project().join("there");
    Deadline::start().until("the first answer", || Ok(there.exists().then_some(())))?;
    let commands = scene.at("world").join("commands");
    Deadline::start().until("the second request", || {
        Ok(std::fs::read_to_string(&commands)?.contains("hang").then_some(()))
    })?;
    let own = std::fs::read_link("/proc/self/ns/pid")?;
    let all = processes::of_scene(scene)?;
    let is_outside =
        |id: u32| std::fs::read_link(format!("/proc/{id}/ns/pid")).is_ok_and(|space| space == own);
    let key = std::fs::read_to_string(scene.at("world").join("client_key"))?;
    let key = key.lines().nth(2).context("the third line of the key")?;
    let numbers: Vec<String> = all.iter().map(|one| one.id.to_string()).collect();
    let mut python =
        Command::new("python3").args(["-c", SEARCH]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    python.stdin.take().context("a pipe")?.write_all(format!("{}\n{key}\n", numbers.join(" ")).as_bytes())?;
    let output = python.wait_with_output()?;
    ensure!(output.status.success(), "the search failed");
    let text = String::from_utf8(output.stdout)?;
    text.lines()
        .map(|line| {
            let numbers = line.split(' ').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
            let [id, found] = numbers.as_slice() else { anyhow::bail!("the search printed {line}") };
            Ok(Searched { is_outside: is_outside(*id), found: usize::try_from(*found)? })
        })
        .collect()
}
