//! Policies that the user does not trust, components that are too expensive to compile, and glob patterns that are too
//! deep: they come through the settings, as a user would enter them, and the host survives.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User, guest};
use serde_json::{Value, json};

use crate::only_tightens::{self, Tier};

as_each_user!(
    rules_that_nobody_vouches_for_show_nothing_of_the_machines_temporary_directory,
    a_component_that_is_too_much_work_is_refused,
    deep_patterns_of_settings_are_mistakes,
    deep_patterns_of_a_policy_are_denials,
    deep_patterns_of_the_agent_are_answered,
);

const DENY: i32 = 20;
const OWN_FAILURE: i32 = 125;

/// Writes settings of the user with these policies and `more`.
fn settings(scene: &Scene, more: &Value) -> Result<()> {
    let mut all = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        all.as_object_mut().context("an object")?.insert(name.clone(), value.clone());
    }
    scene.write(&default_file(scene), &all.to_string())
}

fn default_file(scene: &Scene) -> PathBuf {
    scene.home().join(".pi/agent/sandbox/default.json")
}

fn run(scene: &Scene, script: &str) -> Result<Finished> {
    scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", script])
}

/// Rules of an untrusted policy, of each effect and with each set of rights, below the machine's `/tmp`.
fn rules_that_nobody_vouches_for_show_nothing_of_the_machines_temporary_directory(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let shared = tempfile::Builder::new().prefix("portcullis-it-").tempdir_in("/tmp")?;
    fs::set_permissions(shared.path(), Permissions::from_mode(0o755))?;
    user.own(shared.path())?;
    scene.write(&shared.path().join("marker"), "of the machine\n")?;
    let (place, new) = (shared.path().display(), shared.path().join("new"));
    let script = format!(
        "cat '{place}/marker'; ls -A '{place}' /tmp; mkdir -p '{place}'; echo x > '{place}/new'; \
         cat /proc/self/mountinfo | grep -F '{place} '; true"
    );
    let policy = guest("file-rules", user)?;
    let with = |rule: &Value, tier: Tier| {
        let used = json!({ "use": policy, "config": { "rules": [rule] } });
        settings(&scene, &json!({ "requiredTier": tier.name(), "policies": [{ "use": "workspace" }, used] }))
    };
    for effect in ["allow", "ask", "deny"] {
        for rights in ["", "x", "r", "w", "rx", "rw", "rwx"] {
            for kind in ["tree", "exact"] {
                with(&json!({ kind: shared.path(), "rights": rights, "effect": effect }), Tier::Full)?;
                let inside = run(&scene, &script)?.ended_with(0)?;
                let what = format!("{effect} {kind} `{rights}`: {inside:#?}");
                ensure!(
                    !inside.stdout.contains("of the machine") && !inside.stdout.contains("marker"),
                    "{what}"
                );
                ensure!(!inside.stdout.contains("portcullis-it-") || rights_of_own_making(&inside), "{what}");
                ensure!(!new.exists(), "{what}");
            }
        }
    }
    // The weaker tiers.
    let lesser = [Tier::Namespaces, Tier::Landlock];
    for (tier, effect, rights) in lesser
        .iter()
        .flat_map(|tier| [("allow", "rwx"), ("allow", ""), ("deny", "w")].map(|(e, r)| (*tier, e, r)))
    {
        with(&json!({ "tree": shared.path(), "rights": rights, "effect": effect }), tier)?;
        let inside = only_tightens::run(&scene, tier, &script)?.ended_with(0)?;
        ensure!(!inside.stdout.contains("of the machine"), "{tier:?}, {effect} `{rights}`: {inside:#?}");
        ensure!(!new.exists(), "{tier:?}, {effect} `{rights}`: {inside:#?}");
    }
    // The tools lead to a question, as they do without the policy.
    let open = json!({ "tree": shared.path(), "rights": "rw", "effect": "allow" });
    with(&open, Tier::Full)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let write = host.call("file/write", &json!({ "callId": "w", "path": new, "content": "x" }))?;
    ensure!(!new.exists(), "{write}");
    host.close()?;
    // The control: the same rule of a policy that the user trusts.
    scene.trust(&policy)?;
    for tier in [Tier::Full, Tier::Namespaces, Tier::Landlock] {
        with(&open, tier)?;
        let control = only_tightens::run(&scene, tier, &script)?.ended_with(0)?;
        ensure!(control.stdout.contains("of the machine"), "control, {tier:?}: {control:#?}");
        ensure!(new.exists(), "control, {tier:?}: {control:#?}");
        fs::remove_file(&new)?;
    }
    Ok(())
}

/// Whether the path exists because the script itself created it, in the `/tmp` of the session.
fn rights_of_own_making(inside: &Finished) -> bool {
    let mounted = inside.stdout.lines().any(|line| line.contains(" - "));
    !mounted
}

/// A valid policy with one function that is small and takes gigabytes of memory to compile, without the instructions
/// that an earlier estimate of the cost counted.
fn bomb(user: User) -> Result<Vec<u8>> {
    const BRANCHES: usize = 24_000;
    const LOCALS: usize = 6_000;
    const CORE_MODULE: u8 = 1;
    let mut body = String::new();
    for at in 0..BRANCHES {
        write!(body, "(local.set {} (i32.const {at})) (br_if 0 (local.get 0))", at % LOCALS)?;
    }
    let reads: String = (0..LOCALS).map(|local| format!("(drop (local.get {local}))")).collect();
    let locals = "i32 ".repeat(LOCALS);
    let module = wat::parse_str(format!("(module (func (local {locals}) (block {body}) {reads}))"))?;
    let mut component = fs::read(guest("no-wasi", user)?)?;
    component.push(CORE_MODULE);
    // The length of the section in LEB128: seven bits per byte.
    let mut length = module.len();
    while length > 0x7f {
        component.push(u8::try_from(length & 0x7f)? | 0x80);
        length >>= 7;
    }
    component.push(u8::try_from(length)?);
    component.extend(module);
    Ok(component)
}

fn a_component_that_is_too_much_work_is_refused(user: User) -> Result<()> {
    /// Far more than the time limit of the compiler, for a busy machine.
    const LONGEST: Duration = Duration::from_secs(400);
    let scene = Scene::new(user)?;
    let component = scene.outside().join("bomb.wasm");
    let bytes = bomb(user)?;
    ensure!(bytes.len() < 400 << 10, "{} bytes", bytes.len());
    scene.write(&component, "")?;
    fs::write(&component, bytes)?;
    settings(&scene, &json!({ "policies": [{ "use": "workspace" }, { "use": component }] }))?;
    let started = Instant::now();
    let mut host = Serve::start(&scene, &[], &[])?;
    let process = host.process_id();
    let hello = host.hello(Interface::Absent);
    let greeting = host.succeed("hello", &hello)?;
    ensure!(started.elapsed() < LONGEST, "{:?}", started.elapsed());
    ensure!(greeting.pointer("/status/state") == Some(&json!("closed")), "{greeting}");
    let why = greeting.to_string();
    ensure!(why.contains("`bomb`") && why.contains("more than") && why.contains("compil"), "{why}");
    // The compiler's memory was not the host's own, and the host still runs.
    let peak = peak_kib(process)?;
    ensure!(peak < 700 << 10, "the host took {peak} KiB");
    ensure!(host.run("echo hi").is_err(), "nothing is permitted");
    settings(&scene, &json!({}))?;
    let (_, output) = host.run("echo again")?;
    ensure!(output == "again\n", "{output}");
    host.close()?;
    Ok(())
}

fn peak_kib(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a line")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// A pattern with alternatives nested to this depth. The glob engine panics at `DEEP` and not at `FINE`.
fn nested(depth: usize) -> String {
    format!("{}a{}", "{a,".repeat(depth), "}".repeat(depth))
}

const DEEP: usize = 170;
const FINE: usize = 3;

/// Fails if the program ended as after a panic: with code 101, by a signal, or with our own report of a panic.
fn ended_in_order(told: &Finished, codes: &[i32]) -> Result<()> {
    ensure!(codes.contains(&told.code()), "{told:#?}");
    ensure!(!told.stderr.contains("panic"), "{told:#?}");
    Ok(())
}

fn deep_patterns_of_settings_are_mistakes(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let files = |list: &str, pattern: &str| {
        let mut lists =
            json!({ "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] });
        if let Some(list) = lists.get_mut(list).and_then(Value::as_array_mut) {
            list.push(json!(pattern));
        }
        json!({ "filesystem": lists })
    };
    for list in ["denyRead", "denyWrite", "allowRead", "allowWrite"] {
        settings(&scene, &files(list, &nested(FINE)))?;
        let control = run(&scene, "echo hi")?;
        ensure!(control.code() == 0 || control.stderr.contains("pattern"), "control, {list}: {control:#?}");
        settings(&scene, &files(list, &nested(DEEP)))?;
        ended_in_order(&run(&scene, "echo hi")?, &[OWN_FAILURE])?;
        ended_in_order(&scene.portcullis(&["check", "read", "x"])?, &[1])?;
        let told = scene.portcullis(&["config", "validate"])?;
        ended_in_order(&told, &[1])?;
        ensure!(told.stdout.contains("default.json:1:"), "{list}: {told:#?}");
        let mut host = Serve::start(&scene, &[], &[])?;
        let hello = host.hello(Interface::Absent);
        let greeting = host.succeed("hello", &hello)?;
        ensure!(greeting.pointer("/status/state") == Some(&json!("closed")), "{list}: {greeting}");
        settings(&scene, &json!({}))?;
        let (_, output) = host.run("echo again")?;
        ensure!(output == "again\n", "{list}: {output}");
        host.close()?;
    }
    // The project's own file, which others may have written.
    for list in ["denyRead", "denyWrite"] {
        let file = scene.project().join(".pi/portcullis.json");
        scene.write(&file, &json!({ "filesystem": { list: [nested(DEEP)] } }).to_string())?;
        ended_in_order(&run(&scene, "echo hi")?, &[OWN_FAILURE])?;
        ended_in_order(&scene.portcullis(&["check", "read", "x"])?, &[1])?;
        fs::remove_file(file)?;
    }
    Ok(())
}

fn deep_patterns_of_a_policy_are_denials(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let policy = guest("file-rules", user)?;
    let with = |depth: usize, effect: &str| {
        let rule = json!({ "glob": nested(depth), "rights": "rw", "effect": effect });
        let used = json!({ "use": policy, "config": { "rules": [rule] } });
        settings(&scene, &json!({ "policies": [{ "use": "workspace" }, used] }))
    };
    for trusted in [false, true] {
        if trusted {
            scene.trust(&policy)?;
        }
        for effect in ["allow", "deny"] {
            with(FINE, effect)?;
            run(&scene, "echo hi")?.ended_with(0)?;
            scene.portcullis(&["check", "read", "x"])?.ended_with(0)?;
            with(DEEP, effect)?;
            let refused = run(&scene, "echo hi")?;
            ended_in_order(&refused, &[OWN_FAILURE, 126])?;
            ensure!(!refused.stdout.contains("hi"), "{refused:#?}");
            ended_in_order(&scene.portcullis(&["check", "read", "x"])?, &[1, DENY])?;
            ended_in_order(&scene.portcullis(&["config", "show"])?, &[0, 1])?;
            let mut host = Serve::start(&scene, &[], &[])?;
            let hello = host.hello(Interface::Absent);
            host.succeed("hello", &hello)?;
            let id = host.begin("echo hi > made", &json!({ "PATH": "/usr/bin:/bin" }))?;
            let reply = host.reply(id)?.to_string();
            ensure!(reply.contains("denied") || reply.contains("error"), "{reply}");
            ensure!(!scene.project().join("made").exists(), "{reply}");
            settings(&scene, &json!({}))?;
            let (_, output) = host.run("echo again")?;
            ensure!(output == "again\n", "{output}");
            host.close()?;
        }
    }
    Ok(())
}

/// Every request of the agent that can contain a pattern.
fn deep_patterns_of_the_agent_are_answered(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("a"), "a\n")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let project: &Path = &scene.project();
    let bombs = [
        nested(DEEP),
        "{a,b}".repeat(80),
        "[".repeat(900),
        "(".repeat(5_000),
        format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000)),
        "a{1000}{1000}{1000}".to_owned(),
    ];
    for text in &bombs {
        for (method, params) in [
            ("file/find", json!({ "callId": "f", "cwd": project, "pattern": text })),
            (
                "file/grep",
                json!({ "callId": "g", "cwd": project, "pattern": text, "literal": false, "ignoreCase": false }),
            ),
            (
                "file/grep",
                json!({ "callId": "h", "cwd": project, "pattern": "a", "glob": text, "literal": false, "ignoreCase": false }),
            ),
        ] {
            let reply = host.call(method, &params)?.to_string();
            ensure!(!reply.contains("panic") && !reply.contains("host.fault"), "{method}: {reply}");
        }
    }
    let (_, output) = host.run("echo again")?;
    ensure!(output == "again\n", "{output}");
    ensure!(!host.errors().contains("panic"), "{}", host.errors());
    host.close()?;
    Ok(())
}
