//! Commands and the machine: the limits that they have, the facilities that they can use, and the user as whom they
//! run.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    limits_are_told_to_the_agent,
    limits_are_on_by_default,
    git_knows_who_commits,
    git_has_the_users_plain_settings,
    toolchains_of_the_home_directory_work,
    worktrees_and_submodules_reach_their_repository,
    sockets_of_the_host_are_seen_by_name_only,
    a_control_group_is_used_where_one_can_be_made,
    the_doctor_finds_nothing_missing,
    without_namespaces_files_go_on,
    without_landlock_the_doctor_says_what_a_command_gets,
    in_a_container_that_refuses_namespaces_files_go_on,
    root_works_in_somebody_elses_project,
);

const SETTINGS: &str = r#"{ "network": { "allowedDomains": [], "deniedDomains": [] },
    "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"], "allowWrite": ["."], "denyWrite": [] }, MORE }"#;

/// Arguments for `unshare`, before those of the host, that take away user namespaces.
pub(crate) const NO_NAMESPACES: &[&str] =
    &["-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"];

/// Arguments for `python3`, before those of the host, that install a system call filter like the default one of Docker:
/// new namespaces and mounts fail with the errno that Docker's filter returns.
const CONTAINER: &[&str] =
    &["-c", FILTER, "272:1,308:1,165:1,166:1,155:1,435:38,428:1,429:1,430:1,431:1,432:1,442:1", "56"];
/// Arguments for `python3`, before those of the host, that make `landlock_create_ruleset` fail as on kernels without
/// Landlock.
pub(crate) const NO_LANDLOCK: &[&str] = &["-c", FILTER, "444:38", "none"];
/// A program that installs a filter and starts another program. Its arguments are the numbers of the calls that fail,
/// each with its errno, and the number of `clone` if creating namespaces with it must fail.
const FILTER: &str = r"
import ctypes, os, struct, sys
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO, EPERM = 0x7fff0000, 0x00050000, 1
NEW_NAMESPACES = 0x7e020080
calls, clone = sys.argv[1:3]
code = [(LOAD, 0, 0, 0)]
for call in calls.split(','):
    number, errno = map(int, call.split(':'))
    code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | errno)]
if clone != 'none':
    code += [(JUMP_EQUAL, 0, 3, int(clone)), (LOAD, 0, 0, 16)]
    code += [(JUMP_SET, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, ERRNO | EPERM)]
code += [(RETURN, 0, 0, ALLOW)]
program = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in code))
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('program', ctypes.c_void_p)]
kernel = ctypes.CDLL(None, use_errno=True)
own = Filter(len(code), ctypes.addressof(program))
if kernel.prctl(38, 1, 0, 0, 0) or kernel.prctl(22, 2, ctypes.byref(own), 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[3], sys.argv[3:])
";

fn with_settings(user: User, more: &str) -> Result<Scene> {
    let scene = Scene::new(user)?;
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    scene.write(&file, &SETTINGS.replace("MORE", more))?;
    Ok(scene)
}

/// Runs a script that reaches a limit, and returns its output; the agent must be told which limit it was.
fn meets(host: &mut Serve, script: &str, told: &str) -> Result<String> {
    let (ended, output) = host.run(script)?;
    let notes = ended.get("notes").context("notes")?.to_string();
    ensure!(notes.contains("met a limit") && notes.contains(told), "{script}: {ended} {output:.300}");
    Ok(output)
}

/// Rows 85 to 88.
fn limits_are_told_to_the_agent(user: User) -> Result<()> {
    let limits = r#""limits": { "wallMs": 9000, "cpuMs": 1000, "memoryMib": 120, "processes": 80, "fileMib": 5,
        "outputKib": 64 }"#;
    let scene = with_settings(user, limits)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let output = meets(&mut host, "yes", "limits.outputKib")?;
    ensure!(output.len() == 64 * 1024, "{} bytes", output.len());
    let start = Instant::now();
    meets(&mut host, "(setsid sleep 60 &) ; sleep 60", "limits.wallMs")?;
    ensure!(start.elapsed() < Duration::from_secs(20));
    meets(&mut host, "exec sh -c 'while :; do :; done'", "limits.cpuMs")?;
    meets(&mut host, "head -c 9000000 /dev/zero > big", "limits.fileMib")?;
    ensure!(scene.project().join("big").metadata()?.len() == 5 << 20);
    let three = "perl -e '$x = q(x) x 50_000_000; sleep 2' &".repeat(3);
    meets(&mut host, &format!("{three} wait"), "limits.memoryMib")?;
    meets(&mut host, "sh -c 'while :; do sleep 2 & done' 2>/dev/null; sleep 0.5", "limits.processes")?;
    let (ended, output) = host.run("perl -e '$x = q(x) x 300_000_000; print q(REACHED)'")?;
    ensure!(ended.get("exitCode") != Some(&json!(0)) && !output.contains("REACHED"), "{ended} {output}");
    // The next command has the full limits again.
    let (ended, _) = host.run("sleep 0.01 & wait; head -c 60000 /dev/zero | tr '\\0' x")?;
    ensure!(ended.get("exitCode") == Some(&json!(0)) && ended.get("notes") == Some(&json!([])), "{ended}");
    Ok(())
}

fn limits_are_on_by_default(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let script = "ulimit -u; ulimit -f; df --output=size -B1 /dev/shm | tail -1";
    let finished = scene.portcullis(&["run", "--", "bash", "-c", script])?.ended_with(0)?;
    let numbers: Vec<u64> = finished.stdout.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let memory = fs::read_to_string("/proc/meminfo")?;
    let total: u64 = memory.split_whitespace().nth(1).context("a size")?.parse()?;
    let [processes, blocks, shared] = numbers[..] else { anyhow::bail!("{finished:#?}") };
    ensure!(processes == 4096 && blocks == 16 << 20, "{finished:#?}");
    ensure!(shared < total * 1024, "{finished:#?}");
    Ok(())
}

/// git's settings are in the home directory, which commands do not see.
fn git_knows_who_commits(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let commit =
        "git init -q r && cd r && git commit -q --allow-empty -m x && git log -1 --format='%an <%ae> %cn'";
    let free = scene.portcullis(&["run", "--", "sh", "-c", commit])?;
    ensure!(free.code() != 0, "nobody is known: {free:#?}");
    scene.write(&scene.home().join(".gitconfig"), "[user]\n\tname = Ada L\n\temail = ada@example.org\n")?;
    let known =
        scene.portcullis(&["run", "--", "sh", "-c", &format!("rm -rf r; {commit}")])?.ended_with(0)?;
    ensure!(known.stdout == "Ada L <ada@example.org> Ada L\n", "{known:#?}");
    // As outside, the settings of a repository and of the command itself come first, also those that a command has just
    // set, and a variable comes before all.
    for (before, git, expected) in [
        ("git -C r config user.name Own", "git", "Own <ada@example.org> Own\n"),
        ("true", "git -c user.name=Once", "Once <ada@example.org> Once\n"),
        ("export GIT_AUTHOR_NAME=Var", "git", "Var <ada@example.org> Ada L\n"),
    ] {
        let script = format!(
            "rm -rf r; git init -q r; {before} && cd r && {git} commit -q --allow-empty -m x && \
             git log -1 --format='%an <%ae> %cn'"
        );
        let committed = scene.portcullis(&["run", "--", "sh", "-c", &script])?.ended_with(0)?;
        ensure!(committed.stdout == expected, "{before}, {git}: {committed:#?}");
    }
    Ok(())
}

/// Settings with a command, a path or an address in them stay outside.
fn git_has_the_users_plain_settings(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = "[init]\n\tdefaultBranch = trunk\n[pull]\n\trebase = true\n[core]\n\tpager = touch ran\n\
                    [credential]\n\thelper = store\n[url \"ssh://x\"]\n\tinsteadOf = y\n";
    scene.write(&scene.home().join(".gitconfig"), settings)?;
    let script = "git init -q r && git -C r symbolic-ref --short HEAD && git config pull.rebase; \
                  git config core.pager; git config credential.helper; git config url.ssh://x.insteadof; true";
    let inside = scene.portcullis(&["run", "--", "sh", "-c", script])?.ended_with(0)?;
    ensure!(inside.stdout == "trunk\ntrue\n", "{inside:#?}");
    Ok(())
}

/// Layouts of cargo, npm and pyenv: a toolchain behind links, with credentials beside it.
fn toolchains_of_the_home_directory_work(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let home = scene.home();
    for (path, text) in [
        (".rustup/toolchains/stable/bin/rustc", "#!/bin/sh\necho rustc\n"),
        (".cargo/bin/rustup", "#!/bin/sh\nexec \"$HOME/.rustup/toolchains/stable/bin/rustc\"\n"),
        (".cargo/credentials.toml", "token = \"secret\"\n"),
        (".cargo/registry/index/x", "crate\n"),
        (".nvm/versions/node/v1/bin/node", "#!/bin/sh\necho node\n"),
        (".nvm/versions/node/v1/lib/cli.js", "#!/bin/sh\necho npm\n"),
        (".npmrc", "//registry/:_authToken=secret\n"),
        (".pyenv/shims/python", "#!/bin/sh\nexec \"$HOME/.pyenv/versions/3/bin/python\"\n"),
        (".pyenv/versions/3/bin/python", "#!/bin/sh\necho python\n"),
        (".pypirc", "password = secret\n"),
        (".local/bin/own", "#!/bin/sh\necho own\n"),
        (".local/share/private", "secret\n"),
    ] {
        scene.write(&home.join(path), text)?;
        fs::set_permissions(home.join(path), fs::Permissions::from_mode(0o755))?;
    }
    std::os::unix::fs::symlink("rustup", home.join(".cargo/bin/rustc"))?;
    std::os::unix::fs::symlink("../lib/cli.js", home.join(".nvm/versions/node/v1/bin/npm"))?;
    // The home directory is a symbolic link, as on some machines, and PATH contains it.
    let link = scene.at("linked");
    std::os::unix::fs::symlink(&home, &link)?;
    for home in [&home, &link] {
        let at = |directory: &str| home.join(directory).display().to_string();
        let path =
            [".cargo/bin", ".nvm/versions/node/v1/bin", ".pyenv/shims", ".local/bin"].map(at).join(":");
        let script = "rustc; node; npm; python; own; cat ~/.cargo/registry/index/x; \
            cat ~/.cargo/credentials.toml ~/.npmrc ~/.pypirc ~/.local/share/private 2>/dev/null; \
            { echo x > ~/.cargo/bin/evil; echo x >> ~/.local/bin/own; rm ~/.nvm/versions/node/v1/bin/node; } \
            2>/dev/null && echo WROTE";
        let mut command = scene.portcullis_command(&["run", "--", "sh", "-c", script])?;
        command.env("HOME", home).env("PATH", format!("{path}:/usr/local/bin:/usr/bin:/bin"));
        let finished = Finished::run(&mut command)?;
        ensure!(
            finished.stdout == "rustc\nnode\nnpm\npython\nown\ncrate\n",
            "{}: {finished:#?}",
            home.display()
        );
    }
    ensure!(!home.join(".cargo/bin/evil").exists() && home.join(".nvm/versions/node/v1/bin/node").exists());
    Ok(())
}

/// Commands reach the repository outside the project, but neither the files around it nor its hooks.
fn worktrees_and_submodules_reach_their_repository(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".gitconfig"), "[user]\n\tname = A\n\temail = a@b\n")?;
    let mut git = scene.user().command("sh".as_ref());
    git.args(["-ec", "exec 2>&1; export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always; \
        git init -q -b main lib; (cd lib; git commit -q --allow-empty -m l); \
        git init -q -b main main; cd main; git commit -q --allow-empty -m x; git submodule -q add ../lib sub; \
        git commit -qm sub; git worktree add -q ../tree"]);
    scene.enter(&mut git);
    let made = git.current_dir(scene.outside()).output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let script = "echo y > f && git add f && git commit -qm y && git log -1 --format=%s; git status --porcelain; \
        c=$(git rev-parse --git-common-dir); exec 2>/dev/null; \
        { echo x > $c/hooks/evil || mv $c/hooks $c/h || echo x > $c/../file || echo x > ../lib/file; } && echo WROTE";
    for place in ["tree", "main/sub"] {
        let mut command = scene.portcullis_command(&["run", "--", "sh", "-c", script])?;
        let finished = Finished::run(command.current_dir(scene.outside().join(place)))?;
        let wrote = finished.stdout.contains("WROTE");
        ensure!(finished.stdout.starts_with("y\n") && !wrote, "{place}: {finished:#?}");
    }
    // A project that names a repository is not believed unless the repository names the project.
    scene.write(
        &scene.project().join(".git"),
        &format!("gitdir: {}\n", scene.outside().join("main/.git").display()),
    )?;
    let claim = format!("echo x > '{}'", scene.outside().join("main/.git/claimed").display());
    ensure!(scene.portcullis(&["run", "--", "sh", "-c", &claim])?.code() != 0);
    Ok(())
}

/// Rows 73 and 75: `docker.sock` and similar sockets, wherever they are.
fn sockets_of_the_host_are_seen_by_name_only(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let (outside, inside) = (scene.outside().join("service.sock"), scene.project().join("own.sock"));
    let _listeners = [UnixListener::bind(&outside)?, UnixListener::bind(&inside)?];
    for socket in [&outside, &inside] {
        fs::set_permissions(socket, fs::Permissions::from_mode(0o777))?;
    }
    let connect = |path: &std::path::Path| {
        let path = path.display();
        format!(
            "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); \
             print connect(S, pack_sockaddr_un(q({path}))) ? q(REACHED) : q(no)'"
        )
    };
    for socket in [&outside, &inside] {
        let free = scene.user().command("sh".as_ref()).args(["-c", &connect(socket)]).output()?;
        ensure!(free.stdout == b"REACHED", "control: {free:?}");
        let finished = scene.portcullis(&["run", "--", "sh", "-c", &connect(socket)])?;
        ensure!(finished.stdout == "no", "{finished:#?}");
    }
    // A socket that the settings name can be used.
    let file = scene.home().join(".pi/agent/sandbox/default.json");
    let named = format!("\"allowWrite\": [\".\", \"{}\"]", outside.display());
    scene.write(&file, &SETTINGS.replace("\"allowWrite\": [\".\"]", &named).replace(", MORE", ""))?;
    let finished = scene.portcullis(&["run", "--", "sh", "-c", &connect(&outside)])?;
    ensure!(finished.stdout == "REACHED", "{finished:#?}");
    // A command can use a socket that it made itself.
    let own = "perl -MSocket -e 'socket(L, AF_UNIX, SOCK_STREAM, 0); bind(L, pack_sockaddr_un(q(new.sock))); \
        listen(L, 1); socket(S, AF_UNIX, SOCK_STREAM, 0); print connect(S, pack_sockaddr_un(q(new.sock))) ? 1 : 0'";
    ensure!(scene.portcullis(&["run", "--", "sh", "-c", own])?.stdout == "1");
    Ok(())
}

/// The log says which controllers limit a command; the command itself sees that it is in a group of its own.
fn a_control_group_is_used_where_one_can_be_made(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let own = |text: &str| text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned);
    let host = own(&fs::read_to_string("/proc/self/cgroup")?);
    let finished = scene.portcullis(&["run", "--", "cat", "/proc/self/cgroup"])?.ended_with(0)?;
    let inside = own(&finished.stdout);
    let log = scene.portcullis(&["audit", "tail", "--json"])?.ended_with(0)?.stdout;
    let without = log.contains(r#""host:control-group","value":"\"none\"""#);
    ensure!(log.contains("host:control-group"), "{log}");
    if inside == host {
        ensure!(without, "{log}");
        return Ok(());
    }
    let inside = inside.context("a group")?;
    ensure!(inside.contains("/portcullis-") && !without, "{inside} {log}");
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mount =
        mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let left = std::path::Path::new(mount.context("mounted")?).join(inside.trim_start_matches('/'));
    ensure!(!left.exists(), "`{}` was left behind", left.display());
    Ok(())
}

fn the_doctor_finds_nothing_missing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let finished = scene.portcullis(&["doctor", "--json"])?.ended_with(0)?;
    let told: Value = serde_json::from_str(&finished.stdout)?;
    ensure!(
        told.get("tier") == Some(&json!("full")) && told.get("requiredTier") == Some(&json!("full")),
        "{told:#}"
    );
    let all = |list: &str| told.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    let mechanisms = all("mechanisms");
    ensure!(
        mechanisms.len() >= 8
            && mechanisms.iter().all(|one| one.get("works") == Some(&json!(true))
                || one.get("name") == Some(&json!("control-group"))),
        "{told:#}"
    );
    // Whether control groups are available depends on the machine; a missing one is reported with a remedy.
    let group =
        mechanisms.iter().find(|one| one.get("name") == Some(&json!("control-group"))).context("told")?;
    let text = |key: &str| group.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_explained = text("cause").contains("control group") && !text("remedy").is_empty();
    let is_there = text("detail").contains("memory, pids") && text("cause").is_empty();
    ensure!(group.get("needed") == Some(&json!(false)) && (is_there || is_explained), "{group:#}");
    ensure!(group.get("works") == Some(&json!(is_there)), "{group:#}");
    let attacks = all("selfTest");
    ensure!(attacks.len() >= 15, "{told:#}");
    for attack in &attacks {
        ensure!(attack.get("came") == Some(&json!("blocked")), "{attack}");
    }
    let human = scene.portcullis(&["doctor"])?.ended_with(0)?;
    ensure!(human.stdout.contains("self-test") && !human.stdout.contains('\u{1b}'), "{human:#?}");
    ensure!(
        fs::read_dir(scene.home().join(".local/state/portcullis/doctor"))?.next().is_none(),
        "left behind"
    );

    ensure!(told.pointer("/installation/extension") == Some(&Value::Null), "{told:#}");
    ensure!(told.pointer("/settings/values") == Some(&json!([])), "{told:#}");
    scene.portcullis(&["pi-extension", "install"])?.ended_with(0)?;
    scene.portcullis(&["allow", "installed.test"])?.ended_with(0)?;
    let pi = scene.bin().join("pi");
    scene.write(&pi, "#!/bin/sh\necho 1.2.3\n")?;
    fs::set_permissions(&pi, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let human = scene.portcullis(&["doctor"])?.ended_with(0)?.stdout;
    for text in ["1.2.3, ", "starts this program", "projects.json", "in use", "installed.test"] {
        ensure!(human.contains(text), "no `{text}` in {human}");
    }
    scene.write(&scene.home().join(".pi/agent/extensions/portcullis/src/index.ts"), "// older")?;
    let human = scene.portcullis(&["doctor"])?.ended_with(0)?.stdout;
    ensure!(human.contains("`portcullis pi-extension install` updates it"), "{human}");

    let profile = scene.outside().join("profile");
    scene.portcullis(&["doctor", "--write-apparmor", &profile.display().to_string()])?.ended_with(0)?;
    let text = fs::read_to_string(&profile)?;
    ensure!(text.contains("userns,") && text.contains("/portcullis\" flags=(unconfined)"), "{text}");
    let printed = scene.portcullis(&["doctor", "--write-apparmor", "-"])?.ended_with(0)?;
    ensure!(printed.stdout == text, "{printed:#?}");
    Ok(())
}

/// As on a machine that denies user namespaces to ordinary users.
fn without_namespaces_files_go_on(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let told = through(&scene, "unshare", NO_NAMESPACES, &["doctor"])?.ended_with(4)?;
    for text in ["user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces", "tier", "landlock"] {
        ensure!(told.stdout.contains(text), "{text}: {told:#?}");
    }
    let told = through(&scene, "unshare", NO_NAMESPACES, &["doctor", "--json"])?.ended_with(4)?;
    let told: Value = serde_json::from_str(&told.stdout)?;
    ensure!(told.get("tier") == Some(&json!("landlock")), "{told:#}");
    commands_are_refused_and_files_go_on(&scene, "unshare", NO_NAMESPACES, "user namespaces")
}

/// As on a kernel without Landlock.
fn without_landlock_the_doctor_says_what_a_command_gets(user: User) -> Result<()> {
    let touches = |scene: &Scene| through(scene, "python3", NO_LANDLOCK, &["run", "--", "touch", "ran"]);
    let scene = with_settings(user, r#""limits": {}"#)?;
    let told = through(&scene, "python3", NO_LANDLOCK, &["doctor"])?.ended_with(4)?;
    ensure!(told.stdout.contains("namespaces") && !told.stdout.contains("CAME THROUGH"), "{told:#?}");
    touches(&scene)?.ended_with(125)?;

    let scene = with_settings(user, r#""requiredTier": "namespaces""#)?;
    let told = through(&scene, "python3", NO_LANDLOCK, &["doctor", "--json"])?.ended_with(3)?;
    let told: Value = serde_json::from_str(&told.stdout)?;
    ensure!(told.get("tier") == Some(&json!("namespaces")), "{told:#}");
    touches(&scene)?.ended_with(0)?;
    ensure!(scene.project().join("ran").exists(), "{told:#}");
    Ok(())
}

/// As in a container with Docker's system call filter.
fn in_a_container_that_refuses_namespaces_files_go_on(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    // The filter works as intended.
    let filtered = |words: &[&str]| -> Result<Finished> {
        let mut command = scene.user().command(words.first().context("a program")?.as_ref());
        command.args(words.iter().skip(1));
        scene.enter(&mut command);
        Finished::run(&mut command)
    };
    filtered(&["unshare", "-Ur", "true"])?.ended_with(0)?;
    let control = filtered(&[&["python3"], CONTAINER, &["unshare", "-Ur", "true"]].concat())?;
    ensure!(control.stderr.contains("Operation not permitted"), "{control:#?}");
    let doctor = through(&scene, "python3", CONTAINER, &["doctor"])?;
    ensure!(doctor.code() != 0 && doctor.stdout.contains("tier"), "{doctor:#?}");
    commands_are_refused_and_files_go_on(&scene, "python3", CONTAINER, "portcullis doctor")
}

/// Runs `portcullis` through a program that removes a facility first.
fn through(scene: &Scene, program: &str, words: &[&str], arguments: &[&str]) -> Result<Finished> {
    let host = portcullis_it::portcullis(scene.user())?;
    let mut command = scene.user().command(program.as_ref());
    command.args(words).arg(host).args(arguments);
    scene.enter(&mut command);
    Finished::run(&mut command)
}

fn commands_are_refused_and_files_go_on(
    scene: &Scene,
    program: &str,
    words: &[&str],
    why: &str,
) -> Result<()> {
    let run = through(scene, program, words, &["run", "--", "touch", "ran"])?.ended_with(125)?;
    ensure!(run.stderr.contains("portcullis doctor"), "{run:#?}");

    let mut host = Serve::start_through(scene, program, words)?;
    let hello = host.hello(Interface::Absent);
    let said = host.succeed("hello", &hello)?;
    ensure!(
        said.pointer("/status/warnings").is_some_and(|all| all.to_string().contains("commands are refused")),
        "{said}"
    );
    let refused = host.call(
        "exec",
        &json!({ "callId": "c", "script": "touch ran", "cwd": scene.project(),
        "env": {}, "stream": 1, "origin": "agent" }),
    )?;
    ensure!(refused.get("error").is_some_and(|error| error.to_string().contains(why)), "{refused}");
    ensure!(!scene.project().join("ran").exists());
    let path = scene.project().join("file");
    host.succeed("file/write", &json!({ "callId": "w", "path": path, "content": "x" }))?;
    ensure!(fs::read_to_string(&path)? == "x");
    let secret = scene.home().join(".ssh/id_rsa");
    scene.write(&secret, "secret")?;
    let open = json!({ "callId": "r", "path": secret, "intent": { "kind": "read" } });
    ensure!(host.call("file/open", &open)?.get("error").is_some());
    Ok(())
}

/// Root works in the project of another user: files that commands create belong to that user.
fn root_works_in_somebody_elses_project(user: User) -> Result<()> {
    if user != User::Caller || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let scene = Scene::new(user)?;
    let (project, owner) = (scene.project(), 4321);
    scene.write(&project.join("file"), "old\n")?;
    for path in [&project, &project.join("file")] {
        chown(path, Some(owner), Some(owner))?;
    }
    let script = "id -u; echo new >> file && mkdir made && echo x > made/f && echo t > /tmp/t && git init -q r && echo ok";
    let finished = scene.portcullis(&["run", "--", "sh", "-c", script])?.ended_with(0)?;
    ensure!(finished.stdout == "4321\nok\n", "{finished:#?}");
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let written = project.join("deep/tool");
    host.succeed("file/write", &json!({ "callId": "w", "path": written, "content": "x" }))?;
    host.succeed("file/write", &json!({ "callId": "w", "path": project.join("file"), "content": "x" }))?;
    let (ended, _) = host.run("echo y >> deep/tool && rm file && mv made moved")?;
    ensure!(ended.get("exitCode") == Some(&json!(0)), "{ended}");
    for name in ["moved", "moved/f", "deep", "deep/tool", "r/.git"] {
        let metadata = fs::metadata(project.join(name))?;
        ensure!((metadata.uid(), metadata.gid()) == (owner, owner), "{name}");
    }
    Ok(())
}
