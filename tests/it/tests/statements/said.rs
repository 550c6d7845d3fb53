//! Parses the sentences of Portcullis about the rules in force. A sentence that cannot be parsed is an error, so that
//! no statement escapes the comparison with what can really be done.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use portcullis_it::Scene;

/// The subject of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Who {
    Commands,
    Tools,
}

/// The access that a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Right {
    Read,
    Write,
    Connect,
    /// Reading a file whose path is written out among the arguments of the command. Else commands compute paths.
    Named,
}

/// The result that a claim predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Free,
    Asked,
    /// Refused without a question.
    Closed,
}

/// A claim of a sentence about one access that can be tried.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    pub(super) who: Who,
    pub(super) right: Right,
    /// The path of a file, or the name of a host.
    pub(super) target: PathBuf,
    pub(super) standing: Standing,
}

/// The file that is tried in a directory that is claimed as a whole.
pub(super) const READ_PROBE: &str = "statement-read.txt";
pub(super) const WRITE_PROBE: &str = "statement-write.txt";
/// A file of the system that every user can read.
const SYSTEM_FILE: &str = "/etc/hostname";
const SYSTEM_PROGRAM: &str = "/usr/bin/env";
/// A host that no rule names, and a label for a host below a name.
const OTHER_HOST: &str = "unnamed.example";
const BELOW: &str = "some";

/// The session's own directory where nothing can be mounted.
pub(super) const TEMP_VARIABLE: &str = "$TMPDIR";

/// Files that the host protects.
const SECRETS: [&str; 3] = [".ssh/id_ed25519", ".config/gh/hosts.yml", ".bash_history"];
/// Files in the project from which other programs take settings or code, and a new dot file.
const NAMES: [&str; 4] = [".statementrc", ".envrc", ".vscode/tasks.json", "lefthook.yml"];
const SETTINGS: [&str; 2] = [".pi/agent/settings.json", ".pi/agent/sandbox/default.json"];

/// Returns the claims of one sentence.
pub(super) fn claims(scene: &Scene, sentence: &str) -> Result<Vec<Claim>> {
    let sentence = sentence.trim();
    let bare = sentence.strip_suffix('.').with_context(|| format!("no sentence: `{sentence}`"))?;
    let read = Reader { scene };
    if let Some(rest) = bare.strip_prefix("Commands can read and write your home directory (~)") {
        return read.home(rest, &[(Right::Read, Standing::Free), (Right::Write, Standing::Free)]);
    }
    if let Some(rest) = bare.strip_prefix("Commands can read your home directory (~)") {
        return read.home(rest, &[(Right::Read, Standing::Free)]);
    }
    if let Some(rest) = bare.strip_prefix("Commands do not see your home directory (~)") {
        return read.home(rest, &[(Right::Read, Standing::Closed)]);
    }
    if let Some(rest) = bare.strip_prefix("The sandbox has its own writable ") {
        return read.own(rest);
    }
    if let Some(rest) = bare.strip_prefix("Commands reach ") {
        return read.hosts(rest);
    }
    for (start, callers) in [
        ("Commands and tools can ", &[Who::Commands, Who::Tools][..]),
        ("Commands can ", &[Who::Commands]),
        ("Tools can ", &[Who::Tools]),
    ] {
        if let Some(rest) = bare.strip_prefix(start) {
            return read.files(callers, rest);
        }
    }
    if bare.starts_with(
        "Private keys, credentials and histories at their usual places are never read or written",
    ) {
        return Ok(read.protected());
    }
    if bare.starts_with("Settings of pi and Portcullis are never written") {
        return Ok(read.settings());
    }
    let names = "new dot files, and files from which other programs read settings or code,";
    if bare == format!("In the project, {names} are written only after a question") {
        return Ok(read.names(Standing::Asked));
    }
    if bare == format!("In the project, tools write {names} only after a question; commands need none") {
        return Ok(read.names(Standing::Free));
    }
    if bare.starts_with("This sandbox has no namespaces: the session's own directory is $TMPDIR") {
        return Ok(read.without_mounts());
    }
    for (start, rights) in
        [("Never read or written: ", &[Right::Read, Right::Write][..]), ("Never written: ", &[Right::Write])]
    {
        if let Some(list) = bare.strip_prefix(start) {
            return read.never(list, rights);
        }
    }
    // This text comes from the author of the policy, and is not checked.
    if bare.starts_with("Policies can refuse more to tools: ") {
        return Ok(Vec::new());
    }
    bail!("nobody understands `{sentence}`")
}

struct Reader<'a> {
    scene: &'a Scene,
}

impl Reader<'_> {
    /// `{read|write} LIST; LIST after a question; LIST after a question, if a command names them; not LIST; never LIST`
    fn files(&self, callers: &[Who], rest: &str) -> Result<Vec<Claim>> {
        let (verb, rest) = rest.split_once(' ').context("a verb")?;
        let right = match verb {
            "read" => Right::Read,
            "write" => Right::Write,
            other => bail!("what is `{other}`?"),
        };
        let mut claims = Vec::new();
        for clause in rest.split("; ") {
            let if_named = clause.strip_suffix(" after a question, if a command names them");
            let is_if_named = if_named.is_some();
            // Without being named it is closed.
            let (standing, items) =
                if_named.map_or_else(|| standing_of(clause), |items| (Standing::Closed, items));
            if items == "nothing without a question" {
                continue;
            }
            for item in items_of(items) {
                for target in self.targets(&item, right)? {
                    let claim = |who: &Who| Claim { who: *who, right, target: target.clone(), standing };
                    claims.extend(callers.iter().map(claim));
                    // What is not there is not asked about, and only places of the scene have a probe.
                    if is_if_named && target.starts_with(self.scene.at("")) {
                        let asked =
                            Claim { right: Right::Named, standing: Standing::Asked, ..claim(&Who::Commands) };
                        claims.push(asked);
                    }
                }
            }
        }
        Ok(claims)
    }

    fn never(&self, list: &str, rights: &[Right]) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for (item, right) in
            items_of(list).iter().flat_map(|item| rights.iter().map(move |right| (item, *right)))
        {
            for target in self.targets(item, right)? {
                let claim = |who| Claim { who, right, target: target.clone(), standing: Standing::Closed };
                claims.extend([Who::Commands, Who::Tools].map(claim));
            }
        }
        Ok(claims)
    }

    /// `, but not LIST` or `, except LIST`, or nothing
    fn home(&self, rest: &str, whole: &[(Right, Standing)]) -> Result<Vec<Claim>> {
        let claim = |right, target, standing| Claim { who: Who::Commands, right, target, standing };
        let mut claims = Vec::new();
        for (right, standing) in whole {
            let probe = self.probe(&self.scene.home(), *right);
            claims.push(claim(*right, probe, *standing));
        }
        let excepted = match rest {
            "" => return Ok(claims),
            rest => rest.strip_prefix(", but not ").or_else(|| rest.strip_prefix(", except ")),
        };
        let is_closed = rest.starts_with(", but not ");
        for item in items_of(excepted.with_context(|| format!("what is `{rest}`?"))?) {
            let standing = if is_closed { Standing::Closed } else { Standing::Free };
            for target in self.targets(&item, Right::Read)? {
                claims.push(claim(Right::Read, target, standing));
            }
        }
        Ok(claims)
    }

    /// `LIST`
    fn own(&self, list: &str) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for item in items_of(list) {
            let target = match item.strip_suffix("/.* (kept for this project)") {
                Some("~") => self.scene.home().join(".statement-state"),
                _ => PathBuf::from(&item).join(WRITE_PROBE),
            };
            for who in [Who::Commands, Who::Tools] {
                claims.push(Claim {
                    who,
                    right: Right::Write,
                    target: target.clone(),
                    standing: Standing::Free,
                });
            }
        }
        Ok(claims)
    }

    /// `{no host|every host on the internet|LIST} without a question; LIST after a question; never LIST`
    fn hosts(&self, rest: &str) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        if rest == "no host: their sandbox has no network" {
            let target = OTHER_HOST.into();
            claims.push(Claim {
                who: Who::Commands,
                right: Right::Connect,
                target,
                standing: Standing::Closed,
            });
            return Ok(claims);
        }
        for clause in rest.split("; ") {
            let (standing, items) = standing_of(clause);
            for item in items_of(items.trim_end_matches(" without a question")) {
                let host = match item.as_str() {
                    "no host" => continue,
                    item if item.ends_with(" more") => continue,
                    // Not every machine has IPv6 to try; the gate's own tests do.
                    item if item.matches(':').count() > 1 => continue,
                    // A block of addresses: its first.
                    item if item.contains('/') => item.split('/').next().unwrap_or(item).to_owned(),
                    "every host on the internet" | "every other host on the internet" => {
                        OTHER_HOST.to_owned()
                    }
                    // A port in the item is used; `*:22` stands for every host at that port.
                    item => item.replace("*.", &format!("{BELOW}.")).replace('*', OTHER_HOST),
                };
                let claim =
                    Claim { who: Who::Commands, right: Right::Connect, target: host.into(), standing };
                claims.push(claim);
            }
        }
        Ok(claims)
    }

    fn protected(&self) -> Vec<Claim> {
        let mut claims = self.settings();
        for who in [Who::Commands, Who::Tools] {
            for right in [Right::Read, Right::Write] {
                let targets = SECRETS.map(|name| self.scene.home().join(name));
                claims.extend(targets.map(|target| Claim { who, right, target, standing: Standing::Closed }));
            }
        }
        claims
    }

    /// The names that ask when a tool writes them, and are this to a command.
    fn names(&self, of_commands: Standing) -> Vec<Claim> {
        let callers = [(Who::Commands, of_commands), (Who::Tools, Standing::Asked)].into_iter();
        let of = |(who, standing)| {
            let targets = NAMES.map(|name| self.scene.project().join(name));
            targets.map(|target| Claim { who, right: Right::Write, target, standing })
        };
        callers.flat_map(of).collect()
    }

    /// The directories that only namespaces can make private.
    fn without_mounts(&self) -> Vec<Claim> {
        let targets = ["/tmp", "/dev/shm"].map(|top| self.probe(top.as_ref(), Right::Write));
        let claim =
            |target| Claim { who: Who::Commands, right: Right::Write, target, standing: Standing::Closed };
        targets.map(claim).into()
    }

    fn settings(&self) -> Vec<Claim> {
        let callers = [Who::Commands, Who::Tools].into_iter();
        let of = |who| {
            let targets = SETTINGS.map(|name| self.scene.home().join(name));
            targets.map(|target| Claim { who, right: Right::Write, target, standing: Standing::Closed })
        };
        callers.flat_map(of).collect()
    }

    /// Returns the files that are tried for an item of a list.
    fn targets(&self, item: &str, right: Right) -> Result<Vec<PathBuf>> {
        let outside = self.probe(&self.scene.outside(), right);
        Ok(match (item, right) {
            ("everything" | "everything else", Right::Read) => vec![outside, SYSTEM_FILE.into()],
            ("everything" | "everything else", _) => vec![outside],
            ("the system's programs", Right::Read) => vec![SYSTEM_PROGRAM.into()],
            ("the system's programs" | "parts of /sys", _) => Vec::new(),
            ("devices and files of the kernel (/proc", _) => vec!["/proc/version".into()],
            (item, _) if item.ends_with(" more") => Vec::new(),
            ("/sys)", _) => vec!["/sys/kernel/uevent_seqnum".into()],
            (item, _) if item.starts_with('`') => vec![self.named(item)?],
            (item, _) => {
                let path = self.path(item.trim_end_matches(" (this session's own)"))?;
                let is_known = path.starts_with(self.scene.at("")) || path == Path::new(TEMP_VARIABLE);
                if !path.exists() && !is_known {
                    // This machine has no file for this item that could be tried.
                    return Ok(Vec::new());
                }
                vec![if path.is_file() { path } else { self.probe(&path, right) }]
            }
        })
    }

    /// Returns a file that matches a pattern: `` `GLOB` ``, or `` `GLOB` in PLACE ``.
    fn named(&self, item: &str) -> Result<PathBuf> {
        let rest = item.trim_start_matches('`');
        let (glob, place) = rest.split_once('`').with_context(|| format!("a pattern: {item}"))?;
        let name = glob.rsplit('/').next().unwrap_or(glob).replace('*', "statement");
        let below = match place.strip_prefix(" in ") {
            Some(place) => self.path(place)?,
            None => self.scene.project(),
        };
        Ok(below.join(name))
    }

    fn path(&self, text: &str) -> Result<PathBuf> {
        match text.strip_prefix('~') {
            Some(rest) => Ok(self.scene.home().join(rest.trim_start_matches('/'))),
            None if text.starts_with('/') || text == TEMP_VARIABLE => Ok(text.into()),
            None => bail!("what is `{text}`?"),
        }
    }

    fn probe(&self, directory: &Path, right: Right) -> PathBuf {
        directory.join(if right == Right::Write { WRITE_PROBE } else { READ_PROBE })
    }
}

fn standing_of(clause: &str) -> (Standing, &str) {
    let closed = clause.strip_prefix("not ").or_else(|| clause.strip_prefix("never "));
    match (clause.strip_suffix(" after a question"), closed) {
        (Some(items), _) => (Standing::Asked, items),
        (None, Some(items)) => (Standing::Closed, items),
        (None, None) => (Standing::Free, clause),
    }
}

fn items_of(list: &str) -> Vec<String> {
    // The one item that contains these separators itself.
    let list = list.replace("devices and files", "devices\u{1}and files");
    let parts = list.split(", ").flat_map(|part| part.split(" and "));
    parts.map(|part| part.replace('\u{1}', " ")).filter(|part| !part.is_empty()).collect()
}
