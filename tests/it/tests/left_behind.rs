//! Files that an agent leaves in the project so that the host itself runs, follows or installs them, in this session or
//! in the next one. The controls do the same without Portcullis, or with a host that checks only names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    no_program_of_the_project_is_run_by_the_host,
    pi_is_started_from_elsewhere_and_does_without_the_projects_directories,
    links_beside_the_projects_programs_show_nothing,
    what_is_allowed_by_name_does_not_follow_the_agents_link,
    what_was_judged_is_what_is_installed,
    nobody_else_takes_the_name_of_new_settings,
);

/// A PATH whose first directory is in the project, as activated virtual environments have it.
fn path_of(scene: &Scene) -> String {
    format!("{}:{}:/usr/bin:/bin", scene.project().join(".venv/bin").display(), scene.bin().display())
}

fn session(scene: &Scene) -> Result<Serve> {
    let mut host = Serve::start(scene, &[], &[("PATH", &path_of(scene))])?;
    let hello = host.hello(Interface::Absent);
    host.succeed("hello", &hello)?;
    Ok(host)
}

fn shell(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.user().command("/bin/sh".as_ref());
    scene.enter(&mut command);
    command.env("PATH", path_of(scene)).args(["-c", script]);
    Finished::run(&mut command)
}

fn no_program_of_the_project_is_run_by_the_host(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join(".gitconfig"), "[user]\n\tname = Ada\n")?;
    let mark = scene.home().join("ran");
    let plant = format!(
        "mkdir -p .venv/bin && printf '#!/bin/sh\\ntouch {}\\nexec /usr/bin/git \"$@\"\\n' > .venv/bin/git && \
         chmod +x .venv/bin/git",
        mark.display()
    );
    let mut host = session(&scene)?;
    host.run(&plant)?;
    host.close()?;
    ensure!(scene.project().join(".venv/bin/git").exists(), "the agent may write there");
    let mut host = session(&scene)?;
    let (_, name) = host.run("git config user.name")?;
    ensure!(name == "Ada\n", "the user's name comes from another git: {name}");
    host.close()?;
    ensure!(!mark.exists(), "the host ran the agent's git");
    shell(&scene, "git --version")?.ended_with(0)?;
    ensure!(mark.exists(), "control: it is no program");
    Ok(())
}

fn pi_is_started_from_elsewhere_and_does_without_the_projects_directories(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let program = |path: &Path, text: &str| {
        scene.write(path, text)?;
        Ok::<_, anyhow::Error>(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
    };
    let agents = scene.project().join(".venv/bin/pi");
    program(&agents, "#!/bin/sh\necho the agent\n")?;
    ensure!(shell(&scene, "pi")?.stdout == "the agent\n", "control: it is no program");
    let start = |path: &str| {
        let mut command = scene.portcullis_command(&["pi"])?;
        command.env("PATH", path);
        Finished::run(&mut command)
    };
    // Without another `pi`, starting none is better than starting the project's.
    let refused = start(&path_of(&scene))?;
    ensure!(refused.code() != 0 && refused.stderr.contains("no `pi` on PATH"), "{refused:?}");
    program(&scene.bin().join("pi"), "#!/bin/sh\necho \"$PATH|$PORTCULLIS_PATH\"\n")?;
    let kept = format!("{}:/usr/bin:/bin", scene.bin().display());
    let started = start(&path_of(&scene))?.ended_with(0)?;
    ensure!(started.stdout == format!("{kept}|{}\n", path_of(&scene)), "{started:?}");
    let started = start(&kept)?.ended_with(0)?;
    ensure!(started.stdout == format!("{kept}|\n"), "{started:?}");
    Ok(())
}

fn links_beside_the_projects_programs_show_nothing(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let private = scene.home().join("Documents/private.txt");
    scene.write(&private, "private\n")?;
    let mut host = session(&scene)?;
    host.run(&format!("mkdir -p .venv/bin; ln -s {} .venv/bin/h", scene.home().display()))?;
    host.close()?;
    ensure!(shell(&scene, "cat .venv/bin/h/Documents/private.txt")?.stdout == "private\n", "control");
    let mut host = session(&scene)?;
    let (_, seen) = host.run(&format!("cat {}", private.display()))?;
    ensure!(!seen.contains("private\n"), "{seen}");
    ensure!(!opens(&mut host, &private)?, "the tool read opens it");
    Ok(())
}

/// Writes a settings file with these lists for every project.
fn settings(scene: &Scene, filesystem: &str) -> Result<()> {
    let text = format!(
        "{{ \"network\": {{ \"allowedDomains\": [], \"deniedDomains\": [] }}, \"filesystem\": {{ \"denyRead\": [], \
         {filesystem}, \"denyWrite\": [] }} }}"
    );
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &text)
}

fn what_is_allowed_by_name_does_not_follow_the_agents_link(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let private = scene.home().join("Documents/private.txt");
    scene.write(&private, "private\n")?;
    scene.write(&scene.project().join("build/x"), "")?;
    settings(&scene, r#""allowRead": [".", "seen"], "allowWrite": [".", "build"]"#)?;
    let attack =
        format!("rm -rf build; ln -s {0} build; ln -s {0} seen; ln -s loop loop", scene.home().display());
    let mut host = session(&scene)?;
    host.run(&attack)?;
    host.close()?;
    let through = "cat build/Documents/private.txt";
    ensure!(shell(&scene, through)?.stdout == "private\n", "control: the link leads nowhere");
    let mut host = session(&scene)?;
    let (_, seen) = host.run(&format!("{through}; echo evil >> {}; cat {0}", private.display()))?;
    ensure!(!seen.contains("private\n"), "{seen}");
    ensure!(!opens(&mut host, &private)?, "the tool read opens it");
    ensure!(fs::read_to_string(&private)? == "private\n", "it was written");
    let told = host.succeed("status", &json!({}))?.to_string();
    host.close()?;
    let told = told + &scene.portcullis(&["config", "show"])?.stdout;
    ensure!(told.contains("opens nothing"), "the user is not told: {told}");
    // A directory that replaces the link is the one that the user named.
    shell(&scene, "rm build && mkdir build")?.ended_with(0)?;
    ensure!(!scene.portcullis(&["config", "show"])?.stdout.contains("`build` opens nothing"));
    Ok(())
}

/// Whether the `read` tool opens the file.
fn opens(host: &mut Serve, path: &Path) -> Result<bool> {
    let call = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
    let reply = host.call("file/open", &call)?;
    Ok(reply.pointer("/result/handle").is_some_and(|handle| *handle != Value::Null))
}

/// For some seconds, replaces every file `.portcullis-….tmp` that appears in a directory by a file of its own.
const SWAPPER: &str = r#"
import ctypes, os, select, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
directory, evil, seconds = sys.argv[1], sys.argv[2].encode().decode("unicode_escape"), float(sys.argv[3])
fd = libc.inotify_init1(0o2000000)
libc.inotify_add_watch(fd, directory.encode(), 0x100)
os.makedirs("ev", exist_ok=True)
for i in range(400): open(f"ev/{i}", "w").write(evil)
open("ready", "w").write("")
k, end = 0, time.time() + seconds
while time.time() < end and not os.path.exists("stop"):
    if not select.select([fd], [], [], 0.1)[0]: continue
    events, o = os.read(fd, 65536), 0
    while o < len(events):
        length = struct.unpack_from("iIII", events, o)[3]
        name = events[o + 16 : o + 16 + length].rstrip(b"\0").decode()
        o += 16 + length
        if name.startswith(".portcullis-"):
            try: os.rename(f"ev/{k}", f"{directory}/{name}"); k += 1
            except OSError: pass
"#;

fn what_was_judged_is_what_is_installed(user: User) -> Result<()> {
    const EVIL: &str = "[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch x; true\\n";
    let swap = format!("python3 swap.py .git '{EVIL}' 60");
    let is_evil = |scene: &Scene| -> Result<bool> {
        Ok(fs::read_to_string(scene.project().join(".git/config"))?.contains("fsmonitor"))
    };
    // The control: a tool that writes a file beside the target and renames it by name.
    let control = repository(user)?;
    let naive = "while [ ! -e ready ]; do sleep 0.05; done; for i in $(seq 300); do \
                 { echo '[core]'; sleep 0.01; } > .git/.portcullis-0123456789abcdef.tmp; \
                 mv .git/.portcullis-0123456789abcdef.tmp .git/config; \
                 grep -q fsmonitor .git/config && break; done; touch stop; wait";
    shell(&control, &format!("{swap} & {naive}"))?.ended_with(0)?;
    ensure!(is_evil(&control)?, "control: the swapper never won");

    let scene = repository(user)?;
    let mut host = session(&scene)?;
    let background = host.begin(&swap, &json!({ "PATH": "/usr/bin:/bin" }))?;
    portcullis_it::Deadline::start()
        .until("the swapper", || Ok(scene.project().join("ready").exists().then_some(())))?;
    let (config, other) = (scene.project().join(".git/config"), scene.project().join(".git/new"));
    let before = fs::read_to_string(&config)?;
    for round in 0..40 {
        let content = format!("{before}{}", "# x\n".repeat(150_000 + round));
        host.call("file/write", &json!({ "callId": "w", "path": config, "content": content }))?;
        ensure!(!is_evil(&scene)?, "round {round}: what was installed is not what was judged");
        host.call("file/write", &json!({ "callId": "w", "path": other, "content": content }))?;
        ensure!(fs::read_to_string(&other)? == content, "round {round}");
        fs::remove_file(&other)?;
    }
    fs::write(scene.project().join("stop"), "")?;
    host.finish(background)?;
    // Names of this form are reserved for the host: a command can read and remove such a file, but not make one in any
    // way.
    let name = ".git/.portcullis-0123456789abcdef.tmp";
    fs::write(scene.project().join(name), "old")?;
    user.own(&scene.project().join(name))?;
    let (_, tried) = host.run(&format!(
        "echo evil > f; N={name}; for try in 'echo evil > $N' 'mv f $N' 'ln f $N' 'ln -s f $N' 'ln $N g' 'mkdir $N' \
         'truncate -s 0 $N'; do (eval \"$try\") 2>/dev/null && echo \"$try\"; done; cat $N; rm $N && echo removed; \
         (echo evil > $N) 2>/dev/null || echo end"
    ))?;
    ensure!(tried == "oldremoved\nend\n", "{tried}");
    Ok(())
}

/// A project that is a repository, with the swapping script in it.
fn repository(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("swap.py"), SWAPPER)?;
    shell(&scene, "git init -q .")?.ended_with(0)?;
    Ok(scene)
}

fn nobody_else_takes_the_name_of_new_settings(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let real = scene.project().join("dot/projects.json");
    scene.write(&real, "{}\n")?;
    let link = scene.home().join(".pi/agent/sandbox/projects.json");
    scene.write(&link, "")?;
    fs::remove_file(&link)?;
    std::os::unix::fs::symlink(&real, &link)?;
    shell(&scene, "cd dot && echo evil > .projects.json.new && rm .projects.json.new")?.ended_with(0)?;
    let mut host = session(&scene)?;
    let (_, tried) = host.run(
        "cd dot; echo x > y; N=.projects.json.new; (echo evil > $N) || mv y $N || ln y $N || ln -s y $N || mkdir $N \
         || mv ../dot ../d || echo refused",
    )?;
    ensure!(tried.ends_with("refused\n"), "{tried}");
    Ok(())
}
