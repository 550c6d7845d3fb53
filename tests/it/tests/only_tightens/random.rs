//! Random rules from each source that may only tighten, in every tier: they add nothing to the files that commands, or
//! pi itself in its sandbox, can read and write.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use portcullis_it::{Finished, Scene, User, guest};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LIST_RUN, TIERS, Tier, rules, shared};

as_each_user!(random_rules_only_take_away);

/// The source of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// The project's own file.
    Project,
    /// The same file in the layered layout, where it narrows lists as well.
    Layered,
    /// A policy in the user's settings that is not trusted.
    Untrusted,
    /// The rules of a trusted policy for one command.
    ForCommand,
    /// The project's own file, applied to a contained pi itself.
    Contained,
}

const LAYERS: [Layer; 5] =
    [Layer::Project, Layer::Layered, Layer::Untrusted, Layer::ForCommand, Layer::Contained];

/// The number of rule sets that are tried for each layer in each tier.
const RULE_SETS: usize = 5;
/// The variable with the number of rule sets of all tests of this kind; a real sandbox takes a thousand times as long
/// as a plan.
const RULE_SETS_VARIABLE: &str = "PORTCULLIS_RULE_SETS";

fn rule_sets() -> usize {
    let count = std::env::var(RULE_SETS_VARIABLE).ok().and_then(|count| count.parse::<usize>().ok());
    count.map_or(RULE_SETS, |count| (count / 2000).max(RULE_SETS))
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end
    }

    fn one<'a, T>(&mut self, all: &'a [T]) -> Result<&'a T> {
        all.get(self.below(all.len())).context("an empty list")
    }

    fn some<'a, T>(&mut self, all: &'a [T]) -> Result<Vec<&'a T>> {
        (0..=self.below(4)).map(|_| self.one(all)).collect()
    }
}

/// Directories with the access that the script had to them.
type Reached = BTreeSet<(&'static str, PathBuf)>;

/// A user, a project, and places of the machine with a marker in each.
struct Ground {
    scene: Scene,
    layer: Layer,
    tier: Tier,
    places: Vec<PathBuf>,
    named: Vec<PathBuf>,
    allowed: [Vec<PathBuf>; 2],
    hidden: PathBuf,
    _shared: TempDir,
}

impl Ground {
    fn new(user: User, layer: Layer, tier: Tier) -> Result<Self> {
        let scene = Scene::new(user)?;
        let shared = shared(&scene)?;
        let (project, home, outside) = (scene.project(), scene.home(), scene.outside());
        let hidden = shared.path().to_owned();
        let places = vec![
            project.join("a"),
            project.join("a/b"),
            outside.join("o"),
            home.join("open"),
            home.join("open/deep"),
            home.join("closed"),
            hidden.clone(),
            hidden.join("open"),
            hidden.join("open/deep"),
        ];
        for place in &places {
            scene.write(&place.join("marker"), "of the machine\n")?;
        }
        let mut named = places.clone();
        named.extend(["/run", "/run/lock", "/tmp", "/dev/shm", "/sys/kernel/debug"].map(PathBuf::from));
        named.extend([home.clone(), outside.clone(), hidden.join("none"), home.join("open/none")]);
        let allowed = [vec![home.join("open")], vec![hidden.join("open"), outside.join("o")]];
        if layer == Layer::ForCommand {
            scene.trust(&guest("per-command", user)?)?;
        }
        Ok(Self { scene, layer, tier, places, named, allowed, hidden, _shared: shared })
    }

    /// Writes the user's settings and these rules of the other source, and returns what commands can reach.
    fn reached(&self, set: &Value) -> Result<Reached> {
        let [read, write] =
            self.allowed.each_ref().map(|all| all.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let mut users = rules(&self.scene, self.tier, &read, &write);
        let user = self.scene.user();
        let policies = match self.layer {
            Layer::Untrusted => json!([{ "use": "workspace" },
                { "use": guest("file-rules", user)?, "config": { "rules": set } }]),
            Layer::ForCommand => json!([{ "use": "workspace" }, { "use": guest("per-command", user)? }]),
            Layer::Project | Layer::Layered | Layer::Contained => Value::Null,
        };
        if !policies.is_null() {
            users.as_object_mut().context("an object")?.insert("policies".to_owned(), policies);
        }
        let agent = self.scene.home().join(".pi/agent");
        if self.layer == Layer::Layered {
            self.scene.write(&agent.join("sandbox/default.json"), r#"{ "layout": "layered" }"#)?;
            self.scene.write(&agent.join("extensions/sandbox.json"), &users.to_string())?;
        } else {
            self.scene.write(&agent.join("sandbox/default.json"), &users.to_string())?;
        }
        let own = match self.layer {
            Layer::Layered => Some(".pi/sandbox.json"),
            Layer::Project | Layer::Contained => Some(".pi/portcullis.json"),
            Layer::Untrusted | Layer::ForCommand => None,
        };
        if let Some(own) = own {
            self.scene.write(&self.scene.project().join(own), &json!({ "filesystem": set }).to_string())?;
        }
        self.seen(&if self.layer == Layer::ForCommand { spoken(set) } else { String::new() })
    }

    /// Runs a script that tries every directory.
    fn seen(&self, before: &str) -> Result<Reached> {
        let tries = self.places.iter().map(|place| {
            let place = place.display();
            format!(
                "[ \"$(cat '{place}/marker')\" = 'of the machine' ] && echo 'read {place}'\n\
                 {{ mkdir -p '{place}'; echo x > '{place}/new'; }}\n"
            )
        });
        let tries = tries.collect::<String>();
        let script = format!(
            "{before}exec 2>/dev/null\n[ -n \"$({LIST_RUN})\" ] && echo read /run\n{tries}echo ran\n"
        );
        let mut command = self.tier.portcullis(&self.scene)?;
        if self.layer == Layer::Contained {
            let pi = self.scene.bin().join("pi");
            self.scene.write(&pi, &format!("#!/bin/sh\n{script}"))?;
            fs::set_permissions(&pi, Permissions::from_mode(0o755))?;
            command.args(["pi", "--contain", "-p", "go"]);
        } else {
            command.args(["run", "--ask", "deny", "--", "sh", "-c", &script]);
        }
        let said = Finished::run(&mut command)?;
        ensure!(said.stdout.ends_with("ran\n"), "{said:#?}");
        let lines = said.stdout.lines().filter_map(|line| line.strip_prefix("read "));
        let mut reached: Reached = lines.map(|path| ("read", PathBuf::from(path))).collect();
        for place in self.places.iter().filter(|place| place.join("new").exists()) {
            fs::remove_file(place.join("new"))?;
            reached.insert(("write", place.clone()));
        }
        Ok(reached)
    }

    /// Returns rules that name random places.
    fn rule_set(&self, random: &mut Random) -> Result<Value> {
        let project = self.scene.project();
        Ok(match self.layer {
            Layer::Project | Layer::Contained => {
                json!({ "denyRead": random.some(&self.named)?, "denyWrite": random.some(&self.named)? })
            }
            Layer::Layered => {
                let mut narrowed = random.some(&self.named)?;
                narrowed.push(&project);
                json!({ "denyRead": random.some(&self.named)?, "allowWrite": narrowed })
            }
            Layer::Untrusted | Layer::ForCommand => {
                let mut rule = || -> Result<Value> {
                    let kind = random.one(&["tree", "exact"])?;
                    let rights = random.one(&["", "x", "r", "w", "rx", "rw", "rwx"])?;
                    let effect = random.one(&["allow", "ask", "deny"])?;
                    Ok(json!({ *kind: random.one(&self.named)?, "rights": rights, "effect": effect }))
                };
                json!([rule()?, rule()?, rule()?])
            }
        })
    }
}

/// Returns the rules in the form that the policy reads from a script: effects on trees.
fn spoken(set: &Value) -> String {
    let words = set.as_array().into_iter().flatten().filter_map(|rule| {
        let path = rule.get("tree").or_else(|| rule.get("exact"))?.as_str()?;
        Some(format!("{}={path}", rule.get("effect")?.as_str()?))
    });
    format!(": '@@{}@@'\n", words.collect::<Vec<_>>().join(" "))
}

/// Returns the number of rule sets that removed an access.
fn tried(user: User, layer: Layer, tier: Tier) -> Result<usize> {
    let ground = Ground::new(user, layer, tier)?;
    let nothing = match layer {
        Layer::Project | Layer::Layered | Layer::Contained => json!({}),
        Layer::Untrusted | Layer::ForCommand => json!([]),
    };
    let before = ground.reached(&nothing)?;
    let is_hidden = |place: &Path| {
        !before.contains(&("read", place.to_owned())) && !before.contains(&("write", place.to_owned()))
    };
    ensure!(is_hidden("/run".as_ref()) && is_hidden(&ground.hidden), "{before:?}");
    ensure!(before.len() >= 10, "{before:?}");
    let mut random = Random(20_261_122);
    let mut lost = 0;
    for number in 0..rule_sets() {
        let set = ground.rule_set(&mut random)?;
        let after = ground.reached(&set).with_context(|| format!("{number}: {set}"))?;
        let added: Vec<_> = after.difference(&before).collect();
        ensure!(added.is_empty(), "{number}: {set} adds {added:?}");
        lost += usize::from(after.len() < before.len());
    }
    Ok(lost)
}

fn random_rules_only_take_away(user: User) -> Result<()> {
    let in_tier = |tier: Tier| -> Result<()> {
        for layer in LAYERS {
            // The weaker tiers cannot contain pi.
            if layer == Layer::Contained && !matches!(tier, Tier::Full) {
                continue;
            }
            let lost = tried(user, layer, tier).with_context(|| format!("{layer:?}, {tier:?}"))?;
            ensure!(lost > 0, "{layer:?}, {tier:?}: no rule set took anything away");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = TIERS.map(|tier| scope.spawn(move || in_tier(tier)));
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a panic"))))
    })
}
