//! Attacks of a hostile agent, as a table; numbers are those of the attack corpus.
//!
//! Every script prints `REACHED` if it succeeds. Each runs twice, in equal worlds: unconfined, where it must succeed,
//! and under `portcullis run`, where it must not. The table also lists where rows without a script are tested; those of
//! connections are in `network`.

mod table;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User, portcullis};
use serde_json::json;

use table::{Attack, By, IN_A_PROJECT, IN_THE_HOME_DIRECTORY, ROWS, TRIED_ELSEWHERE, WITH_SMALL_LIMITS};

as_each_user!(
    commands_in_a_project,
    commands_in_the_home_directory,
    commands_with_small_limits,
    file_tools,
    a_sandbox_that_cannot_be_made_anew_opens_nothing,
    settings_behind_a_link_stay_as_they_are,
    projects_cannot_loosen,
    nothing_is_left_of_a_session,
    a_home_behind_a_link_is_the_same_home,
);

/// `call` counts as reaching the kernel unless the answer is "not permitted", "no such call" or "no such family"; a
/// call that the kernel does not have is distinguished. `git` runs without the variables that other rows check.
const DRIVER: &str = r#"
call() { perl -e '$n = shift; @a = map { /^-?\d+$/ ? 0 + $_ : $_ } @ARGV; $r = syscall(0 + $n, @a);
    print "REACHED\n" if $r >= 0 || $! != 1 && $! != 38 && $! != 97;
    print "NO SUCH CALL\n" if $r < 0 && $! == 38' -- "$@"; }
reached() { echo REACHED; }
git() { env -u GIT_DIR -u GIT_CONFIG_COUNT git "$@"; }
export -f call reached git
while [ $# -gt 0 ]; do
    echo "== $1"; timeout 20 bash -c "$2" 2>&1 </dev/null; echo; shift 2
done"#;

const RULES: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["/home", "./conf/secret"], "allowRead": [".", "~/.pi"], "allowWrite": ["."],
        "denyWrite": [] } }"#;

fn commands_in_a_project(user: User) -> Result<()> {
    let place = |scene: &Scene| scene.project();
    try_all(user, IN_A_PROJECT, place, &[("home/.pi/agent/sandbox/default.json", RULES)])
}

fn commands_in_the_home_directory(user: User) -> Result<()> {
    try_all(user, IN_THE_HOME_DIRECTORY, |scene| scene.home(), &[])
}

/// With a limit on memory that programs may reserve: allocations beyond it fail, and the program continues.
fn commands_with_small_limits(user: User) -> Result<()> {
    let limits = r#""limits": { "processes": 60, "memoryMib": 150, "fileMib": 10 } }"#;
    let rules = format!("{}, {limits}", RULES.trim_end().trim_end_matches('}'));
    let place = |scene: &Scene| scene.project();
    try_all(user, WITH_SMALL_LIMITS, place, &[("home/.pi/agent/sandbox/default.json", &rules)])
}

/// Every row is tested: by a script here or in `network`, or where the second table says.
#[test]
fn no_row_is_left_out() {
    let scripts = [IN_A_PROJECT, IN_THE_HOME_DIRECTORY, WITH_SMALL_LIMITS];
    let tried = |row: u16| {
        scripts.iter().any(|table| table.iter().any(|attack| attack.0 == row))
            || crate::network::tries(row)
            || TRIED_ELSEWHERE.iter().any(|(number, _)| *number == row)
    };
    let missing: Vec<u16> = ROWS.filter(|row| !tried(*row)).collect();
    assert!(missing.is_empty(), "rows of the corpus without a test: {missing:?}");
    for (row, test) in TRIED_ELSEWHERE {
        let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{row}: `{test}` names no test"));
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        let text = std::fs::read_to_string(format!("{root}{file}")).unwrap_or_default();
        assert!(text.contains(&format!("fn {name}(")), "{row}: there is no `{name}` in `{file}`");
    }
}

/// Runs every attack of the table, free and confined, and compares the results.
fn try_all(
    user: User,
    attacks: &[Attack],
    place: impl Fn(&Scene) -> std::path::PathBuf,
    files: &[(&str, &str)],
) -> Result<()> {
    let is_root = rustix::process::geteuid().is_root() && !user.is_stranger();
    let attacks: Vec<&Attack> =
        attacks.iter().filter(|Attack(_, _, by, _)| is_root || *by == By::Anybody).collect();
    let free = outcomes(&world(user, files)?, &attacks, &place, None)?;
    let confined = outcomes(&world(user, files)?, &attacks, &place, Some(&portcullis(user)?))?;
    let mut wrong = Vec::new();
    for attack in attacks {
        let name = title(attack);
        let of = |all: &BTreeMap<String, String>| all.get(&name).cloned();
        let (free, confined) = (of(&free), of(&confined));
        match (free, confined) {
            (_, None) => wrong.push(format!("{name}: was not tried")),
            (_, Some(text)) if text.contains("REACHED") => wrong.push(format!("{name}: not stopped: {text}")),
            (Some(text), Some(_)) if text.contains("REACHED") => {}
            // This kernel lacks the call, so there is nothing to attack.
            (Some(text), Some(_)) if text == "NO SUCH CALL" => {}
            (free, _) => wrong.extend(cannot_try(&name, free.as_deref().unwrap_or_default())),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// An attack that this machine stops by itself proves nothing; if everything must be tried that is a failure.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tried")]
fn cannot_try(name: &str, said: &str) -> Option<String> {
    let text = format!("{name}: fails here also without Portcullis: {said}");
    if std::env::var_os("CI").is_some() {
        return Some(text);
    }
    eprintln!("{text}");
    None
}

fn title(Attack(number, name, _, _): &Attack) -> String {
    format!("{number} {name}")
}

/// Returns the output of each attack.
fn outcomes(
    scene: &Scene,
    attacks: &[&Attack],
    place: impl Fn(&Scene) -> std::path::PathBuf,
    through: Option<&std::path::Path>,
) -> Result<BTreeMap<String, String>> {
    let server = TcpListener::bind("127.0.0.1:0").context("a server to be reached")?;
    let victim = Victim::start(scene)?;
    let shared = tempfile::NamedTempFile::new_in("/dev/shm")?;
    std::fs::write(shared.path(), "REACHED")?;
    scene.user().own(shared.path())?;
    let abstract_name = format!("portcullis-it-{}", victim.0.id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name)?)?;
    let _named = [scene.project(), scene.outside()]
        .map(|place| -> Result<UnixListener> {
            let socket = place.join("service.sock");
            let listener = UnixListener::bind(&socket)?;
            std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
            Ok(listener)
        })
        .into_iter()
        .collect::<Result<Vec<_>>>()?;

    let mut command = scene.user().command("/bin/bash".as_ref());
    command.args([
        "-c",
        "exec 7<\"$HOME/.ssh/id_rsa\" 8<\"$HOME\" 9<>/dev/tcp/127.0.0.1/$PORT; exec \"$@\"",
        "bash",
    ]);
    if let Some(host) = through {
        command.arg(host).args(["run", "--"]);
    }
    command.args(["bash", "-c", DRIVER, "bash"]);
    command.args(attacks.iter().flat_map(|attack| [title(attack), attack.3.to_owned()]));
    scene.enter(&mut command);
    command.current_dir(place(scene));
    // Names for scripts to find their targets.
    command.env("ABSTRACT", &abstract_name);
    command.env("VICTIM", victim.0.id().to_string());
    command.env("SHARED", shared.path().file_name().context("a name")?);
    command.env("PORT", server.local_addr()?.port().to_string()).env("HOST", portcullis(scene.user())?);
    for name in [
        "GIT_DIR",
        "NODE_OPTIONS",
        "AWS_SECRET_ACCESS_KEY",
        "MY_TOKEN",
        "SSH_AUTH_SOCK",
        "BASH_ENV",
        "GIT_CONFIG_COUNT",
        "DBUS_SESSION_BUS_ADDRESS",
    ] {
        command.env(name, "REACHED");
    }
    let finished = Finished::run(&mut command)?;
    let sections = finished.stdout.split("== ").skip(1).filter_map(|section| section.split_once('\n'));
    let found: BTreeMap<String, String> =
        sections.map(|(name, said)| (name.to_owned(), said.trim().to_owned())).collect();
    ensure!(!found.is_empty(), "nothing was tried: {finished:#?}");
    Ok(found)
}

/// A scene whose home, project and outside directory hold everything that the attacks try to steal or change.
fn world(user: User, files: &[(&str, &str)]) -> Result<Scene> {
    let scene = Scene::new(user)?;
    for (path, text) in [
        ("home/.ssh/id_rsa", "REACHED"),
        ("home/.ssh/authorized_keys", "mine"),
        ("home/.bashrc", ""),
        ("home/.pi/agent/auth.json", "REACHED"),
        ("project/conf/secret", "REACHED"),
        ("project/.git/hooks/pre-commit", ""),
        ("project/.git/HEAD", "ref: refs/heads/main\n"),
        ("project/.git/config", "[core]\n\tbare = false\n"),
        ("project/.git/objects/info/alternates", ""),
        ("project/.git/refs/heads/.keep", ""),
        ("project/.git/info/exclude", ""),
        ("project/a/b/c/d/file", ""),
        ("project/.pi/settings.json", "{}"),
        ("project/.pi/portcullis.json", "{}"),
    ]
    .iter()
    .chain(files)
    {
        scene.write(&scene.at(path), text)?;
    }
    Ok(scene)
}

/// A process of the same user outside the sandbox, which attacks try to see, to trace and to kill.
struct Victim(Child);

/// The victim lets every process trace it, where the machine restricts that to children (`kernel.yama.ptrace_scope`).
const VICTIM: &str = "syscall(157, 0x59616d61, -1, 0, 0, 0); exec qw(sleep 600)";

impl Victim {
    fn start(scene: &Scene) -> Result<Self> {
        let mut command = scene.user().command("perl".as_ref());
        command.args(["-e", VICTIM]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        scene.enter(&mut command);
        command.env("SECRET", "REACHED").current_dir(scene.home());
        Ok(Self(command.spawn().context("starting a process to attack")?))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // The process may be gone: the unconfined run of an attack kills it.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Rows 16, 19, 20 and 23, and similar attacks on the tools that the host executes, without a client that answers
/// questions.
fn file_tools(user: User) -> Result<()> {
    let scene = world(user, &[])?;
    let (home, project) = (scene.home(), scene.project());
    symlink(home.join(".pi/agent/auth.json"), project.join("link"))?;
    symlink(scene.outside().join("new"), project.join("dangling"))?;
    symlink("/proc/self/root", project.join("root"))?;
    ensure!(Command::new("mkfifo").arg(project.join("pipe")).status()?.success());
    let shared = tempfile::NamedTempFile::new_in("/tmp")?;
    std::fs::write(shared.path(), "REACHED")?;
    scene.user().own(shared.path())?;
    for control in [home.join(".ssh/id_rsa"), project.join("link"), shared.path().to_owned()] {
        ensure!(std::fs::read_to_string(&control)?.contains("REACHED"), "control: {}", control.display());
    }
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let at = |name: &str| project.join(name).display().to_string();
    let own = format!("/proc/{}", host.process_id());
    for path in [
        at("../home/.ssh/id_rsa"),
        at("link"),
        at("root/etc/hostname"),
        at("pipe"),
        shared.path().display().to_string(),
        "/proc/self/environ".to_owned(),
        format!("{own}/environ"),
        format!("{own}/cwd/conf/secret"),
        "/dev/stdin".to_owned(),
        "/dev/zero".to_owned(),
        format!("/{}", "a".repeat(5_000)),
        at("conf/secret\0x"),
    ] {
        let open = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
        let reply = host.call("file/open", &open)?;
        ensure!(reply.get("error").is_some(), "{path:?} was opened: {reply}");
    }
    for path in [
        at("link"),
        at("dangling"),
        at("pipe"),
        at("root/tmp/x"),
        at(".pi/extensions/x.ts"),
        at("../outside/new"),
        home.join(".bashrc").display().to_string(),
        home.join(".pi/agent/sandbox/default.json").display().to_string(),
        "/proc/self/oom_score_adj".to_owned(),
    ] {
        let reply = host.call("file/write", &json!({ "callId": "w", "path": path, "content": "x" }))?;
        ensure!(reply.get("error").is_some(), "{path:?} was written: {reply}");
    }
    ensure!(!scene.outside().join("new").exists());
    let control = json!({ "callId": "w", "path": at("fine"), "content": "x" });
    host.succeed("file/write", &control)?;
    Ok(())
}

/// A command leaves a file for which no sandbox can be prepared; a grant afterwards makes the host prepare the sandbox
/// again.
fn a_sandbox_that_cannot_be_made_anew_opens_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let notes = scene.outside().join("notes");
    scene.write(&notes, "alpha")?;
    let shared = tempfile::NamedTempFile::new_in("/tmp")?;
    std::fs::write(shared.path(), "REACHED")?;
    scene.user().own(shared.path())?;
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    host.run("mkdir .pi; ln -s nowhere .pi/settings.json")?;
    let open = |path: &std::path::Path| json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
    let id = host.request("file/open", &open(&notes))?;
    let question = host.question()?;
    host.answer(&question, &json!(1))?;
    host.reply(id)?;
    let id = host.request("file/open", &open(shared.path()))?;
    // The host either finds no such file or asks; it never opens the file without a question.
    let said = host.wait("an answer or a question", |message| {
        message.get("id") == Some(&json!(id)) || message.get("method") == Some(&json!("ask"))
    })?;
    ensure!(said.get("result").is_none(), "the host's own /tmp is open: {said}");
    Ok(())
}

/// Row 119: the user's settings are in the project, behind a symbolic link.
fn settings_behind_a_link_stay_as_they_are(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = scene.project().join("dotfiles/default.json");
    scene.write(&settings, RULES)?;
    let link = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&link.with_file_name("README"), "")?;
    symlink(&settings, &link)?;
    let script = "echo x >> dotfiles/default.json; rm dotfiles/default.json; mv dotfiles d; echo tried";
    scene.portcullis(&["run", "--", "bash", "-c", script])?.ended_with(0)?;
    ensure!(std::fs::read_to_string(&settings)? == RULES);
    scene.portcullis(&["check", "write", "dotfiles/default.json"])?.ended_with(20)?;
    scene.portcullis(&["check", "write", "dotfiles/other"])?.ended_with(0)?;
    Ok(())
}

/// Rows 47 and 119: the settings of a project cannot loosen those of the user.
fn projects_cannot_loosen(user: User) -> Result<()> {
    for settings in [
        r#"{ "enabled": false }"#,
        r#"{ "filesystem": { "allowWrite": ["/"] } }"#,
        r#"{ "policies": [] }"#,
        r#"{ "environment": { "keep": ["*"] } }"#,
    ] {
        let scene = Scene::new(user)?;
        scene.portcullis(&["run", "--", "true"])?.ended_with(0).context("control")?;
        scene.write(&scene.project().join(".pi/portcullis.json"), settings)?;
        let finished = scene.portcullis(&["run", "--", "touch", "ran"])?;
        ensure!(finished.code() != 0 && !scene.project().join("ran").exists(), "{settings}: {finished:#?}");
    }
    Ok(())
}

/// Row 68, with a command that leaves files which are hard to remove: directories without permission bits, and a very
/// deep one.
fn nothing_is_left_of_a_session(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let script = "cd /tmp; mkdir -p locked/in; touch locked/file; ln -s \"$OLDPWD\" locked/link; chmod 0 locked; \
        perl -e 'for (1..3000) { mkdir q(d); chdir q(d) }'";
    scene.write(&scene.project().join("stays"), "")?;
    scene.portcullis(&["run", "--", "bash", "-c", script])?.ended_with(0)?;
    let sessions = scene.home().join(".local/state/portcullis/sessions");
    let left: Vec<_> = std::fs::read_dir(&sessions)?.collect();
    ensure!(left.is_empty(), "{left:?}");
    ensure!(scene.project().join("stays").exists());
    Ok(())
}

fn a_home_behind_a_link_is_the_same_home(user: User) -> Result<()> {
    let scene = world(user, &[])?;
    let link = scene.at("linked");
    symlink(scene.home(), &link)?;
    let mut command = scene.portcullis_command(&["run", "--", "bash", "-c"])?;
    command.arg(format!("cat ~/.ssh/id_rsa '{}/.ssh/id_rsa'; echo ran", scene.home().display()));
    let finished = Finished::run(command.env("HOME", &link))?;
    ensure!(finished.stdout == "ran\n", "{finished:#?}");
    Ok(())
}
