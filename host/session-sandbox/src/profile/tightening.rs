//! Tests that tightening rules only take rights away, for any rules and any kind of sandbox.
//!
//! Random rule sets become plans, as in a session. A small model of mounts and of Landlock, which shares no code with
//! the product, computes the rights of a plan: a set of the machine's paths with rights on them. A tightening rule must
//! not add to that set. Paths that belong only to the session are not in it: where a directory of the machine below
//! `/tmp` is removed, the session's own becomes visible.
//!
//! `PORTCULLIS_RULE_SETS` sets the number of rule sets.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use portcullis_decision::grant::PathPattern;
use portcullis_decision::pattern::{FilePattern, GlobText};
use portcullis_decision::profile::{FileRights, FileRule};
use portcullis_decision::{
    Base, Effect, Grant, GrantPattern, GrantScope, Profile as Rules, RuleLayer, RuleSet,
};
use portcullis_sandbox::{Limits, MountStep, PathKind, Plan, Profile, Writable};
use tempfile::TempDir;

use super::disk::Disk;
use super::{mounted, wanted};
use crate::sandbox_subject::{AgentPlaces, SandboxSubject};

/// Default number of rule sets, limited by the time of a test run.
const RULE_SETS: u64 = 1_000;

/// Pseudo-random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end).unwrap()).unwrap()
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        of.get(self.below(of.len())).unwrap()
    }

    fn many<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}

/// Test directories on the real disk, below the machine's `/tmp` and outside of it.
struct Ground {
    _directories: [TempDir; 2],
    _sockets: Vec<UnixListener>,
    /// The session's temporary directory.
    temp: PathBuf,
    home: PathBuf,
    bound: Vec<PathBuf>,
    /// Paths that rules name and that are checked.
    paths: Vec<PathBuf>,
}

impl Ground {
    fn new() -> Self {
        let directories = ["/tmp", "/var/tmp"].map(|top| tempfile::tempdir_in(top).unwrap());
        let [shared, other] = directories.each_ref().map(|top| top.path().canonicalize().unwrap());
        let mut paths: Vec<PathBuf> =
            ["/", "/run", "/run/lock", "/run/none", "/tmp", "/etc", "/dev/shm", "/sys/kernel/debug"]
                .map(PathBuf::from)
                .to_vec();
        for directory in ["home/u/p/d/e", "home/u/.pi/agent/sub", "home/u/.ssh", "srv/a/b", "session"] {
            std::fs::create_dir_all(other.join(directory)).unwrap();
        }
        std::fs::create_dir_all(shared.join("a/b")).unwrap();
        let mut bound = Vec::new();
        for top in [&shared, &other] {
            paths.push(top.clone());
            for (name, is_socket) in [
                ("a", false),
                ("a/b", false),
                ("a/b/f", false),
                ("a/none", false),
                ("a/s", true),
                ("srv", false),
                ("srv/a", false),
                ("srv/a/b", false),
                ("srv/a/s", true),
                ("home", false),
                ("home/u", false),
                ("home/u/p", false),
                ("home/u/p/d", false),
                ("home/u/p/d/e", false),
                ("home/u/p/f", false),
                ("home/u/p/none", false),
                ("home/u/.ssh", false),
                ("home/u/.ssh/id", false),
                ("home/u/.pi", false),
                ("home/u/.pi/agent", false),
                ("home/u/.pi/agent/auth.json", false),
                ("home/u/.pi/agent/sub", false),
                ("home/u/.pi/agent/sub/f", false),
                ("home/u/.pi/agent/s", true),
            ] {
                let path = top.join(name);
                if path.parent().is_some_and(Path::is_dir) && !path.ends_with("none") && !path.exists() {
                    if is_socket { bound.push(path.clone()) } else { std::fs::write(&path, "").unwrap() }
                }
                paths.push(path);
            }
        }
        let sockets = bound.iter().map(|path| UnixListener::bind(path).unwrap()).collect();
        let (temp, home) = (other.join("session"), other.join("home/u"));
        Self { _directories: directories, _sockets: sockets, temp, home, bound, paths }
    }

    fn rule(&self, random: &mut Random, effects: &[Effect]) -> FileRule {
        let path = random.one(&self.paths).clone();
        let pattern = match random.below(24) {
            0 => FilePattern::Name { below: path, glob: GlobText::parse("a*").unwrap() },
            1 => FilePattern::Glob(GlobText::parse("**/f").unwrap()),
            2 | 3 => FilePattern::Exact(path),
            _ => FilePattern::Tree(path),
        };
        let bits = random.below(8);
        FileRule {
            id: "r".to_owned(),
            pattern,
            rights: FileRights { read: bits & 1 != 0, write: bits & 2 != 0, execute: bits & 4 != 0 },
            effect: *random.one(effects),
            conceal: random.below(2) == 0,
            condition: if random.below(10) == 0 { "sometimes".to_owned() } else { String::new() },
            reason: String::new(),
            setting: String::new(),
        }
    }

    fn layer(&self, random: &mut Random, effects: &[Effect], tightens: bool) -> RuleLayer {
        let files = random.many(6, |random| self.rule(random, effects));
        RuleLayer { name: "l".to_owned(), profile: Rules { files, ..Rules::default() }, tightens }
    }

    fn grant(&self, random: &mut Random) -> Grant {
        let pattern = FilePattern::Tree(random.one(&self.paths).clone());
        let rights = *random.one(&[FileRights::READ, FileRights::READ_WRITE]);
        Grant {
            scope: GrantScope::Session,
            pattern: GrantPattern::Path(PathPattern { pattern, rights }),
            granted_at: 0,
            expires_at: 0,
        }
    }

    fn inmate(&self, random: &mut Random) -> SandboxSubject {
        let directory = self.home.join(".pi/agent");
        let places =
            AgentPlaces { written: vec![directory.join("sub")], directory, ..AgentPlaces::default() };
        if random.below(4) == 0 { SandboxSubject::Agent(places) } else { SandboxSubject::Commands }
    }
}

/// The mechanism that confines commands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Tier {
    Mounts,
    Landlock,
}

/// The inputs other than rules.
struct Case<'a> {
    ground: &'a Ground,
    tier: Tier,
    base: Base,
    grants: Vec<Grant>,
    inmate: SandboxSubject,
    named: Vec<PathBuf>,
}

/// A right on a path of the machine.
type Right = (PathBuf, &'static str);

impl<'a> Case<'a> {
    fn new(ground: &'a Ground, random: &mut Random) -> Self {
        let tier = *random.one(&[Tier::Mounts, Tier::Landlock]);
        let temp = if tier == Tier::Mounts { PathBuf::from("/tmp") } else { ground.temp.clone() };
        let mut closed = random.many(2, |random| random.one(&ground.paths).clone());
        closed.retain(|path| path != Path::new("/"));
        closed.extend(ground.home.parent().map(Path::to_owned));
        let workspace = vec![random.one(&[ground.home.join("p"), ground.paths[9].join("a")]).clone()];
        let grants = random.many(1, |random| ground.grant(random));
        let named = random.many(1, |random| random.one(&ground.bound).clone());
        let inmate = ground.inmate(random);
        Self {
            ground,
            tier,
            base: Base { workspace, temp, closed, ..Base::default() },
            grants,
            inmate,
            named,
        }
    }

    /// Returns the rights of the plan for these rules, or `None` if they give no sandbox.
    fn given(&self, layers: &[RuleLayer]) -> Option<BTreeSet<Right>> {
        let rules = RuleSet::compile(self.inmate.rules(layers.to_vec()), self.base.clone(), &self.grants);
        let mut disk = Disk::default();
        let wanted = wanted(&rules.places(), &mut disk);
        let (places, _) =
            mounted(&rules, (wanted, &mut disk), &self.ground.bound, (&self.named, false)).ok()?;
        let profile = Profile {
            places,
            temp: self.ground.temp.clone(),
            own: Vec::new(),
            closed: Vec::new(),
            devices: Vec::new(),
            hostname: "x".to_owned(),
            limits: Limits::default(),
            acting: None,
            names: None,
            order: None,
        };
        let plan = Plan::new(&profile, &PathKind::on_disk).ok()?;
        let names = self.ground.paths.iter().flat_map(|path| [path.clone(), path.join("new")]);
        Some(names.flat_map(|path| self.rights(plan.steps(), &path)).collect())
    }

    fn rights(&self, steps: &[MountStep], path: &Path) -> Vec<Right> {
        let write = match self.tier {
            Tier::Mounts => through_mounts(steps, path),
            Tier::Landlock => through_landlock(steps, path),
        };
        match write {
            None => Vec::new(),
            Some(Writable::No) => vec![(path.to_owned(), "read")],
            Some(Writable::Yes) => vec![(path.to_owned(), "read"), (path.to_owned(), "write")],
        }
    }
}

/// Applies the mounts in order, and returns the right on a path of the machine.
///
/// Each mount hides all earlier ones below its mount point.
fn through_mounts(steps: &[MountStep], path: &Path) -> Option<Writable> {
    let mut mounts = vec![(PathBuf::from("/"), Some(Writable::No))];
    for step in steps {
        let (point, machine) = match step {
            MountStep::Show { path, writable } => (path.clone(), Some(*writable)),
            MountStep::HideDirectory { path, .. }
            | MountStep::HideFile { path }
            | MountStep::Resolver { path } => (path.clone(), None),
            MountStep::Devices { .. } => ("/dev".into(), None),
            MountStep::Processes => ("/proc".into(), None),
            MountStep::Temp { .. } => ("/tmp".into(), None),
            MountStep::Own { path, .. } => (path.clone(), None),
            MountStep::Prepare { .. } | MountStep::Pin { .. } => continue,
        };
        mounts.retain(|(known, _)| !known.starts_with(&point));
        mounts.push((point, machine));
    }
    let holding = mounts.into_iter().filter(|(point, _)| path.starts_with(point));
    holding.max_by_key(|(point, _)| point.components().count()).and_then(|(_, machine)| machine)
}

/// Without mounts each path is the machine's, and the deepest step for a directory around it decides.
fn through_landlock(steps: &[MountStep], path: &Path) -> Option<Writable> {
    let mut rights = vec![(PathBuf::from("/"), Some(Writable::No))];
    for step in steps {
        match step {
            MountStep::Show { path, writable } => rights.push((path.clone(), Some(*writable))),
            MountStep::HideDirectory { path, .. } | MountStep::HideFile { path } => {
                rights.push((path.clone(), None))
            }
            MountStep::Temp { directory } => {
                rights.extend([("/tmp".into(), None), (directory.clone(), None)])
            }
            MountStep::Devices { .. } => rights.push(("/dev".into(), None)),
            MountStep::Processes => rights.push(("/proc".into(), None)),
            MountStep::Prepare { .. }
            | MountStep::Pin { .. }
            | MountStep::Resolver { .. }
            | MountStep::Own { .. } => {}
        }
    }
    let holding = rights.into_iter().filter(|(top, _)| path.starts_with(top));
    holding.max_by_key(|(top, _)| top.components().count()).and_then(|(_, machine)| machine)
}

const EFFECTS: [Effect; 3] = [Effect::Allow, Effect::Ask, Effect::Deny];

/// Adds rules that may only tighten.
///
/// These are denials of a project, an untrusted policy, rules for one command (which are of the same kind), or one more
/// denial in a policy whose verdicts count.
fn tightened(ground: &Ground, random: &mut Random, layers: &[RuleLayer]) -> Vec<RuleLayer> {
    let mut layers = layers.to_vec();
    let count = layers.len();
    match random.below(4) {
        0 => layers.push(ground.layer(random, &[Effect::Deny], false)),
        1 | 2 => layers.push(ground.layer(random, &EFFECTS, true)),
        _ => {
            let denial = ground.rule(random, &[Effect::Deny]);
            let at = random.below(count);
            layers[at].profile.files.push(denial);
        }
    }
    layers
}

#[test]
fn rules_that_tighten_only_take_away() {
    let count = std::env::var("PORTCULLIS_RULE_SETS").ok().map_or(RULE_SETS, |count| count.parse().unwrap());
    let ground = Ground::new();
    let halves = std::thread::scope(|scope| {
        let half = |part| (part..count).step_by(2).map(|seed| try_one(&ground, seed)).collect::<Vec<_>>();
        let other = scope.spawn(move || half(1));
        [half(0), other.join().unwrap()].concat()
    });
    let tried = halves.iter().flatten().count();
    let lost = halves.iter().flatten().filter(|lost| **lost > 0).count();
    println!("{count} rule sets: {tried} with a sandbox before and after, of which {lost} lost rights");
    // Otherwise the test is not meaningful.
    assert!(tried * 4 > halves.len() * 3 && lost * 10 > tried, "{tried} {lost} of {count}");
}

/// Returns the number of rights that a tightening rule takes away, or `None` if there is no sandbox with or without it.
fn try_one(ground: &Ground, seed: u64) -> Option<usize> {
    let mut random = Random(seed);
    let case = Case::new(ground, &mut random);
    let mut layers = vec![ground.layer(&mut random, &EFFECTS, false)];
    layers.extend(random.many(2, |random| {
        let tightens = random.below(3) == 0;
        ground.layer(random, &EFFECTS, tightens)
    }));
    let after = tightened(ground, &mut random, &layers);
    let (given, left) = (case.given(&layers)?, case.given(&after)?);
    let added: Vec<_> = left.difference(&given).collect();
    assert!(
        added.is_empty(),
        "seed {seed} ({:?}): {added:?}\nbefore {layers:#?}\nafter {after:#?}",
        case.tier
    );
    Some(given.len() - left.len())
}

/// The control: a layer that counts opens the paths it allows.
///
/// Among them are the machine's `/run` and directories in `/tmp`.
#[test]
fn rules_that_count_open_what_they_allow() {
    let ground = Ground::new();
    let shared = ground.paths.iter().find(|path| path.starts_with("/tmp") && path.ends_with("a")).unwrap();
    for opened in [Path::new("/run"), Path::new("/run/lock"), shared] {
        let mut random = Random(1);
        let mut case = Case::new(&ground, &mut random);
        (case.grants, case.base.closed) = (Vec::new(), Vec::new());
        for tier in [Tier::Mounts, Tier::Landlock] {
            case.tier = tier;
            case.base.temp = if tier == Tier::Mounts { "/tmp".into() } else { ground.temp.clone() };
            let mut layer = ground.layer(&mut random, &[Effect::Allow], false);
            let mut rule = ground.rule(&mut random, &[Effect::Allow]);
            rule.pattern = FilePattern::Tree(opened.to_owned());
            (rule.rights, rule.condition) = (FileRights::READ_WRITE, String::new());
            layer.profile.files = vec![rule];
            let right = |right| (opened.to_owned(), right);
            let before = case.given(&[]).unwrap();
            assert!(!before.contains(&right("read")), "{opened:?} {tier:?}");
            let after = case.given(&[layer.clone()]).unwrap();
            assert!(after.contains(&right("read")) && after.contains(&right("write")), "{opened:?} {tier:?}");
            // The same rule of an untrusted policy opens no path.
            layer.tightens = true;
            assert!(!case.given(&[layer]).unwrap().contains(&right("read")), "{opened:?} {tier:?}");
        }
    }
}
