//! The subject of the session's sandbox: the agent's commands, or the agent itself.
//!
//! The agent's own process has the same restrictions as commands, except for the few files that it needs: its program,
//! its credentials and its session files. So each layer ends with rules that allow these files, and an additional layer
//! restricts the rest: no other file in the agent's directory can be created or changed, since its settings and
//! extensions, and ours, are stored there.

use std::path::{Path, PathBuf};

use portcullis_decision::pattern::{FilePattern, GlobText};
use portcullis_decision::profile::{FileRights, FileRule};
use portcullis_decision::{Effect, Profile, RuleLayer, RuleSet};
use portcullis_sandbox::{CallDetails, NameAccess};

/// The process in the sandbox.
#[derive(Debug, Clone, Default)]
pub enum SandboxSubject {
    /// The agent's commands, side by side.
    #[default]
    Commands,
    /// The agent's own process, with all processes that it starts itself.
    Agent(AgentPlaces),
}

/// Canonical paths that the agent's own process needs in addition to those of commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPlaces {
    /// Its own directory, which is readable. The writable paths in it are listed below.
    pub directory: PathBuf,
    /// Other paths to read and execute: its program, and the files that this loads.
    pub programs: Vec<PathBuf>,
    /// The program with its packages, which must not change: an uncontained pi executes them. Programs try to keep
    /// caches there when they start, before anybody could answer a question.
    pub installed: Vec<PathBuf>,
    /// Existing paths in its directory that must not change.
    pub fixed: Vec<PathBuf>,
    /// Existing paths in its directory that are hidden from it: sessions of other projects.
    pub hidden: Vec<PathBuf>,
    /// Writable paths in its directory, also below hidden ones.
    ///
    /// Only files and directories can be created there, since an uncontained pi would follow a link, and none with a
    /// name that makes git take the directory for a repository.
    pub written: Vec<PathBuf>,
    /// Lock directories in its directory. Each must be an empty directory, or an uncontained pi could not remove it.
    pub locks: Vec<PathBuf>,
    /// Paths in its directory that can be written after a question.
    pub asked: Vec<PathBuf>,
}

/// Name of the layer of its own rules.
const LAYER: &str = "pi itself";

/// Id of the rule on its writable paths, below which only files and directories are allowed.
const PLAIN: &str = "pi.own-sessions";
/// Id of the rule on its locks.
const LOCK: &str = "pi.own-locks";

const CREDENTIALS: &str =
    "pi stores its credentials there, and a pi that is not contained executes commands in it";
const FIXED: &str = "it determines what pi may do; change it in a pi that is not contained";
const INSTALLED: &str = "it belongs to pi's program, which a pi that is not contained executes";
const HIDDEN: &str = "it contains the sessions of other projects";
const NO_REPOSITORY: &str = "the user's programs may read settings from it";
const OWN: &str = "pi itself needs it";

impl SandboxSubject {
    /// Returns true for the agent itself.
    pub fn is_agent(&self) -> bool {
        matches!(self, Self::Agent(_))
    }

    /// Returns true if it may perform an operation on a name that the session's rules let it write.
    pub fn may(&self, path: &Path, attempt: NameAccess, deed: &CallDetails) -> bool {
        let Self::Agent(places) = self else { return true };
        let is_plain = |path: &Path| places.written.iter().any(|tree| path.starts_with(tree));
        if places.locks.iter().any(|lock| lock == path) {
            return matches!(
                (attempt, deed),
                (NameAccess::MakeDirectory | NameAccess::Remove, CallDetails::Plain)
            );
        }
        match deed {
            CallDetails::Symlink(_) | CallDetails::Special => !is_plain(path),
            CallDetails::LinkOf(old) | CallDetails::MoveOf(old) => !is_plain(path) || is_plain(old),
            CallDetails::Plain | CallDetails::LinkTo(_) | CallDetails::MoveTo(_) => true,
        }
    }

    /// Returns the rules that apply to it, derived from those for commands.
    pub fn rules(&self, layers: Vec<RuleLayer>) -> Vec<RuleLayer> {
        let mut layers = self.relaxed(layers);
        if let Self::Agent(places) = self {
            layers.push(RuleLayer { name: LAYER.to_owned(), profile: places.profile(), tightens: false });
        }
        layers
    }

    /// Returns the layers with the exceptions that it needs to work.
    pub fn relaxed(&self, mut layers: Vec<RuleLayer>) -> Vec<RuleLayer> {
        if let Self::Agent(places) = self {
            layers.iter_mut().for_each(|layer| layer.profile.files.extend(places.needed()));
        }
        layers
    }
}

impl AgentPlaces {
    /// Returns the rules that no layer may override.
    fn needed(&self) -> Vec<FileRule> {
        let run = FileRights { read: true, write: false, execute: true };
        let read = std::iter::once(&self.directory).chain(&self.programs);
        let read = read.map(|path| rule("pi.own", tree(path), run, Effect::Allow, OWN));
        let write = rule("pi.own", tree(&self.directory), FileRights::WRITE, Effect::Allow, OWN);
        read.chain([write]).collect()
    }

    /// Returns the rules that restrict it; exceptions come last.
    fn profile(&self) -> Profile {
        let anything = FilePattern::Name { below: self.directory.clone(), glob: GlobText::any() };
        let all = |paths: &[PathBuf], id: &str, rights, effect, reason: &str| -> Vec<FileRule> {
            paths.iter().map(|path| rule(id, tree(path), rights, effect, reason)).collect()
        };
        let files = [
            vec![
                rule("pi.own", tree(&self.directory), FileRights::READ_WRITE, Effect::Allow, OWN),
                rule("pi.directory", anything, FileRights::WRITE, Effect::Deny, FIXED),
            ],
            all(&self.installed, "pi.program", FileRights::WRITE, Effect::Deny, INSTALLED),
            all(&self.fixed, "pi.directory", FileRights::WRITE, Effect::Deny, FIXED),
            all(&self.hidden, "pi.other-sessions", FileRights::ALL, Effect::Deny, HIDDEN),
            all(&self.written, PLAIN, FileRights::READ_WRITE, Effect::Allow, OWN),
            self.written.iter().flat_map(|path| no_repository(path)).collect(),
            self.locks
                .iter()
                .map(|path| rule(LOCK, exactly(path), FileRights::READ_WRITE, Effect::Allow, OWN))
                .collect(),
            all(&self.asked, "pi.credentials", FileRights::WRITE, Effect::Ask, CREDENTIALS),
        ];
        Profile { files: files.concat(), ..Profile::default() }
    }
}

/// Returns the paths below which only files and directories may be created, from rules of [`SandboxSubject::rules`].
pub fn plain_places(rules: &RuleSet) -> Vec<PathBuf> {
    let own = rules.layers().iter().filter(|layer| layer.name == LAYER);
    let is_plain = |rule: &&FileRule| rule.id == PLAIN || rule.id == LOCK;
    let places = own.flat_map(|layer| layer.profile.files.iter().filter(is_plain));
    let paths = places.filter_map(|rule| match &rule.pattern {
        FilePattern::Exact(path) | FilePattern::Tree(path) => Some(path.clone()),
        FilePattern::Glob(_) | FilePattern::Name { .. } => None,
    });
    paths.collect()
}

/// Returns the rules against dot names and repositories below a directory: git and shells of the user may be started
/// there.
fn no_repository(path: &Path) -> Vec<FileRule> {
    let glob = |name| FilePattern::Name { below: path.to_owned(), glob: name };
    let names = [".*", "HEAD", "objects", "refs", "commondir"]
        .into_iter()
        .filter_map(|name| GlobText::parse(name).ok());
    names
        .map(|name| rule("pi.no-repository", glob(name), FileRights::WRITE, Effect::Deny, NO_REPOSITORY))
        .collect()
}

fn exactly(path: &Path) -> FilePattern {
    FilePattern::Exact(path.to_owned())
}

fn tree(path: &Path) -> FilePattern {
    FilePattern::Tree(path.to_owned())
}

fn rule(id: &str, pattern: FilePattern, rights: FileRights, effect: Effect, reason: &str) -> FileRule {
    FileRule {
        id: id.to_owned(),
        pattern,
        rights,
        effect,
        conceal: true,
        condition: String::new(),
        reason: reason.to_owned(),
        setting: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use portcullis_decision::Base;
    use portcullis_decision::profile::FileRight;
    use portcullis_decision::rules::Caller;

    use super::*;

    fn agent() -> AgentPlaces {
        let at = |name: &str| Path::new("/home/u/.pi/agent").join(name);
        AgentPlaces {
            directory: at(""),
            programs: vec!["/opt/pi".into(), "/home/u/npm/node_modules".into()],
            installed: vec!["/home/u/npm/node_modules".into()],
            fixed: vec![at("sandbox")],
            hidden: vec![at("sessions")],
            written: vec![at("sessions/--p--")],
            locks: vec![at("auth.json.lock")],
            asked: vec![at("auth.json")],
        }
    }

    fn rules() -> RuleSet {
        let deny = |path: &str| rule("no", tree(Path::new(path)), FileRights::ALL, Effect::Deny, "");
        let commands =
            ["/home/u/.ssh", "/home/u/.pi/agent/auth.json", "/home/u/.pi/agent/sandbox", "/opt/pi"];
        let files = commands.map(deny).to_vec();
        let layer = RuleLayer {
            name: "host".into(),
            profile: Profile { files, ..Profile::default() },
            tightens: false,
        };
        let agent = SandboxSubject::Agent(agent());
        let base = Base {
            workspace: vec!["/home/u/p".into()],
            temp: "/tmp".into(),
            closed: vec!["/home".into()],
            ..Base::default()
        };
        RuleSet::compile(agent.rules(vec![layer]), base, &[])
    }

    #[test]
    fn the_agent_has_what_it_needs_and_nothing_more() {
        use Effect::{Allow, Ask, Deny};
        let rules = rules();
        for (path, read, write) in [
            ("/home/u/.pi/agent", Allow, Allow),
            ("/home/u/.pi/agent/auth.json", Allow, Ask),
            ("/home/u/.pi/agent/auth.json.lock", Allow, Allow),
            ("/home/u/.pi/agent/auth.json.lock/x", Allow, Deny),
            ("/home/u/.pi/agent/settings.json", Allow, Deny),
            ("/home/u/.pi/agent/extensions/x.ts", Allow, Deny),
            ("/home/u/.pi/agent/sandbox/default.json", Allow, Deny),
            ("/home/u/.pi/agent/sessions/--other--/s.jsonl", Deny, Deny),
            ("/home/u/.pi/agent/sessions/--p--/s.jsonl", Allow, Allow),
            ("/home/u/.pi/agent/sessions/--p--/s.jsonl.lock", Allow, Allow),
            ("/home/u/.pi/agent/sessions/--p--/.git", Allow, Deny),
            ("/home/u/.pi/agent/sessions/--p--/d/.envrc", Allow, Deny),
            ("/home/u/.pi/agent/sessions/--p--/HEAD", Allow, Deny),
            ("/home/u/.pi/agent/sessions/--p--/d/objects", Allow, Deny),
            ("/home/u/.ssh/id", Deny, Deny),
            ("/home/u/.bashrc", Ask, Ask),
            ("/home/u/p/file", Allow, Allow),
            ("/opt/pi/cli.js", Allow, Deny),
            ("/home/u/npm/node_modules/pi/.cache", Allow, Deny),
        ] {
            let is = |right| rules.file(Path::new(path), right, Caller::Command).effect;
            assert_eq!((is(FileRight::Read), is(FileRight::Write)), (read, write), "{path}");
        }
    }

    #[test]
    fn what_a_pi_outside_finds_leads_nowhere() {
        let agent = SandboxSubject::Agent(agent());
        let (own, lock) = ("/home/u/.pi/agent/sessions/--p--/s.jsonl", "/home/u/.pi/agent/auth.json.lock");
        let elsewhere = "/home/u/p/file";
        for (path, attempt, deed, is_allowed) in [
            (own, NameAccess::Write, CallDetails::Plain, true),
            (own, NameAccess::Write, CallDetails::Symlink("/home/u/.bashrc".into()), false),
            (own, NameAccess::Write, CallDetails::Special, false),
            (own, NameAccess::Write, CallDetails::LinkOf(elsewhere.into()), false),
            (own, NameAccess::Write, CallDetails::MoveOf(elsewhere.into()), false),
            (own, NameAccess::Write, CallDetails::MoveOf(own.into()), true),
            (lock, NameAccess::MakeDirectory, CallDetails::Plain, true),
            (lock, NameAccess::Remove, CallDetails::Plain, true),
            (lock, NameAccess::Write, CallDetails::Plain, false),
            (lock, NameAccess::Write, CallDetails::Symlink("x".into()), false),
            (lock, NameAccess::Write, CallDetails::MoveOf(own.into()), false),
            (elsewhere, NameAccess::Write, CallDetails::Symlink("/etc".into()), true),
        ] {
            assert_eq!(agent.may(Path::new(path), attempt, &deed), is_allowed, "{path} {attempt:?} {deed:?}");
            assert!(SandboxSubject::Commands.may(Path::new(path), attempt, &deed));
        }
        let AgentPlaces { written, locks, .. } = self::agent();
        assert_eq!(plain_places(&rules()), [written, locks].concat());
    }

    #[test]
    fn commands_keep_their_rules() {
        let layer = RuleLayer { name: "host".into(), profile: Profile::default(), tightens: false };
        assert_eq!(SandboxSubject::Commands.rules(vec![layer.clone()]), [layer]);
    }
}
