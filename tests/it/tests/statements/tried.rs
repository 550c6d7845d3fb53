//! Tries the accesses that sentences claim, with real commands and real calls of tools.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use portcullis_it::{Interface, Scene, Serve};
use serde_json::{Value, json};

use super::said::{Claim, Right, Standing, TEMP_VARIABLE, Who};

/// Every session has a private directory here.
const TEMP: &str = "/tmp";

/// The result of each access that was tried.
#[derive(Debug, Default)]
pub(super) struct Tried(BTreeMap<(Who, Right, PathBuf), Standing>);

/// Tries every access that is claimed.
pub(super) fn tried(scene: &Scene, claims: &[Claim]) -> Result<Tried> {
    let of = |who, right| -> BTreeSet<&Path> {
        let meant = claims.iter().filter(|claim| claim.who == who && claim.right == right);
        meant.map(|claim| claim.target.as_path()).collect()
    };
    prepare(scene, claims)?;
    let mut host = Serve::greeted(scene, &[], Interface::Present)?;
    let mut tried = Tried::default();
    // Tools first, because a file that a command makes is not new to a tool. Files that were written in the session's
    // private directory are read there afterwards.
    for right in [Right::Write, Right::Read] {
        for file in of(Who::Tools, right) {
            let standing = by_tool(&mut host, right, file)?;
            tried.0.insert((Who::Tools, right, file.to_owned()), standing);
        }
    }
    let unasked = by_run(scene, &of(Who::Commands, Right::Read), &of(Who::Commands, Right::Write))?;
    for (right, files) in [Right::Write, Right::Read].map(|right| (right, of(Who::Commands, right))) {
        for file in files {
            let standing = match unasked.contains(&(right, file.to_owned())) {
                true => Standing::Free,
                false => by_command(&mut host, &script(right, file))?.0,
            };
            tried.0.insert((Who::Commands, right, file.to_owned()), standing);
        }
    }
    // A path that is written out is asked about before the command starts, if a sentence claims so, and only then.
    let closed = of(Who::Commands, Right::Read).into_iter().filter(|file| {
        tried.0.get(&(Who::Commands, Right::Read, file.to_path_buf())) == Some(&Standing::Closed)
    });
    let written_out: BTreeSet<&Path> = closed.chain(of(Who::Commands, Right::Named)).collect();
    for file in written_out {
        let standing = by_command(&mut host, &script(Right::Named, file))?.0;
        tried.0.insert((Who::Commands, Right::Named, file.to_owned()), standing);
    }
    for target in of(Who::Commands, Right::Connect) {
        let target_text = target.to_string_lossy();
        let standing = match scene.is_weakened() {
            true => by_connecting_without_hold(&mut host, &target_text)?,
            false => by_connecting(&mut host, &target_text, "")?,
        };
        tried.0.insert((Who::Commands, Right::Connect, target.to_owned()), standing);
    }
    Ok(tried)
}

impl Tried {
    /// Returns a text for each claim that is not true. What commands cannot read is not asked about by its name either,
    /// unless it is claimed.
    pub(super) fn mistakes(&self, claims: &[Claim]) -> Vec<String> {
        let unclaimed = claims.iter().filter_map(|claim| {
            let named = Claim { right: Right::Named, ..claim.clone() };
            let is_closed =
                Claim { who: Who::Commands, right: Right::Read, standing: Standing::Closed, ..claim.clone() };
            let is_claimed = claims.iter().any(|one| one.right == Right::Named && one.target == claim.target);
            (*claim == is_closed && !is_claimed).then_some(named)
        });
        let claims: Vec<Claim> = claims.iter().cloned().chain(unclaimed).collect();
        let wrong = claims.iter().filter_map(|claim| {
            let key = (claim.who, claim.right, claim.target.clone());
            let found = self.0.get(&key).copied();
            (found != Some(claim.standing)).then(|| format!("{claim:?}, and it is {found:?}"))
        });
        wrong.collect()
    }
}

/// Creates the files to be read, as far as they are in the scene.
fn prepare(scene: &Scene, claims: &[Claim]) -> Result<()> {
    let root = scene.at("");
    let is_read = |claim: &&Claim| matches!(claim.right, Right::Read | Right::Named);
    let read = claims.iter().filter(is_read).filter(|claim| claim.target.starts_with(&root));
    for claim in read.filter(|claim| !claim.target.exists()) {
        scene.write(&claim.target, "statement")?;
    }
    let written =
        claims.iter().filter(|claim| claim.right == Right::Write && claim.target.starts_with(&root));
    for directory in written.filter_map(|claim| claim.target.parent()).filter(|directory| !directory.exists())
    {
        scene.write(&directory.join("statement"), "")?;
    }
    Ok(())
}

/// Tries the files with `portcullis run`, where no user can be asked.
fn by_run(
    scene: &Scene,
    read: &BTreeSet<&Path>,
    written: &BTreeSet<&Path>,
) -> Result<BTreeSet<(Right, PathBuf)>> {
    let written = written.iter().map(|file| (Right::Write, *file));
    let all: Vec<_> = written.chain(read.iter().map(|file| (Right::Read, *file))).collect();
    let lines: Vec<String> = all
        .iter()
        .enumerate()
        .map(|(number, (right, file))| {
            format!("({}) >/dev/null 2>&1 && echo did {number}", script(*right, file))
        })
        .collect();
    let ended = scene.portcullis(&["run", "--", "sh", "-c", &format!("{}\ntrue", lines.join("\n"))])?;
    let ended = ended.ended_with(0)?;
    let done = ended.stdout.lines().filter_map(|line| line.strip_prefix("did ")?.parse::<usize>().ok());
    Ok(done.filter_map(|number| all.get(number)).map(|(right, file)| (*right, file.to_path_buf())).collect())
}

/// Returns a script that reads or writes a file; it fails where it cannot.
fn script(right: Right, file: &Path) -> String {
    let is_private = file.starts_with(TEMP) || file.starts_with(TEMP_VARIABLE);
    let quoted = format!("\"{}\"", file.display());
    match right {
        Right::Write => format!("echo statement > {quoted}"),
        _ if is_private => format!("echo statement > {quoted} && grep -q . {quoted}"),
        Right::Read => format!("file=$(printf %s {quoted}) && grep -aq . \"$file\""),
        Right::Named | Right::Connect => format!("grep -aq . {quoted}"),
    }
}

/// Runs a command; returns the result, and the host's report of it.
fn by_command(host: &mut Serve, script: &str) -> Result<(Standing, Value)> {
    // Without the rules over names, questions follow from what a command prints on standard error.
    let script = format!("({script}) >/dev/null && echo did");
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin" }))?;
    let was_asked = refuse_what_is_asked(host, id, &format!("call-{id}"))?;
    let (ended, output) = host.finish(id)?;
    Ok(match (was_asked, output.contains("did")) {
        (true, _) => (Standing::Asked, ended),
        (false, true) => (Standing::Free, ended),
        (false, false) => (Standing::Closed, ended),
    })
}

/// Tries a connection in a sandbox that may have no network, and does not hold connections inside the call.
fn by_connecting_without_hold(host: &mut Serve, target: &str) -> Result<Standing> {
    let socket = "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) or exit 1'";
    if by_command(host, socket)?.0 == Standing::Closed {
        return Ok(Standing::Closed);
    }
    // It waits for an answer, as programs do: a connection that is closed at once is not asked about.
    by_connecting(host, target, " && { read -t 30 -u 3 || true; }")
}

/// Tries a connection; a server that does not answer does not count as a refusal.
fn by_connecting(host: &mut Serve, target: &str, then: &str) -> Result<Standing> {
    let (name, port) = target.rsplit_once(':').unwrap_or((target, "443"));
    let connect = format!("bash -c 'exec 3<>/dev/tcp/{name}/{port}{then}'");
    let (standing, ended) = by_command(host, &connect)?;
    // The connection to the gate itself always succeeds; the report at the end tells the verdict.
    let told = ended.to_string();
    let is_refused = ["no connection to", "stopped on the way to"].iter().any(|one| told.contains(one))
        && told.contains("(rule `");
    Ok(match (standing, is_refused) {
        (Standing::Asked, _) => Standing::Asked,
        (_, true) => Standing::Closed,
        (_, false) => Standing::Free,
    })
}

/// Tries a call of a tool.
fn by_tool(host: &mut Serve, right: Right, file: &Path) -> Result<Standing> {
    if right == Right::Read && file.starts_with(TEMP) {
        // The directory contains only files of the session, so the file is created first.
        by_tool(host, Right::Write, file)?;
    }
    let call = format!("{right:?} {}", file.display());
    let (method, params) = match right {
        Right::Write => ("file/write", json!({ "callId": call, "path": file, "content": "statement" })),
        Right::Read | Right::Named | Right::Connect => {
            ("file/open", json!({ "callId": call, "path": file, "intent": { "kind": "read" } }))
        }
    };
    let id = host.request(method, &params)?;
    let was_asked = refuse_what_is_asked(host, id, &call)?;
    let reply = host.reply(id)?;
    Ok(match (was_asked, reply.get("result").is_some()) {
        (true, _) => Standing::Asked,
        (false, true) => Standing::Free,
        (false, false) => Standing::Closed,
    })
}

/// Refuses every question until the request `id` is answered; returns whether one of them was about this call.
fn refuse_what_is_asked(host: &mut Serve, id: u64, call: &str) -> Result<bool> {
    let mut was_asked = false;
    loop {
        let is_reply = |message: &Value| {
            message.get("method").is_none() && message.get("id").and_then(Value::as_u64) == Some(id)
        };
        let is_question = |message: &Value| message.get("method") == Some(&json!("ask"));
        let message = host.wait("answer or question", |message| is_reply(message) || is_question(message))?;
        if is_reply(&message) {
            host.put_back(message);
            return Ok(was_asked);
        }
        // What a command did not see is closed to it, also where the user is asked afterwards.
        let was_missed = message.to_string().contains("its output says that it did not find");
        was_asked |= message.pointer("/params/callId") == Some(&json!(call)) && !was_missed;
        host.answer(&message, &json!("refuse")).context("refusing")?;
    }
}
