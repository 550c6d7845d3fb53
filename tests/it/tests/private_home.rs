//! The private home: each project has its own state of tools, caches are visible and stay unchanged, and no change
//! reaches the user's home, another project or the host's programs. Each attack has a control without it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Deadline, Finished, Interface, Scene, Serve, User, machine_tmp, portcullis};
use serde_json::json;

as_each_user!(
    state_of_tools_is_kept_for_the_project,
    what_the_user_keeps_stays_as_it_is,
    a_cache_is_seen_and_not_poisoned,
    caches_start_empty_where_they_cannot_be_layered,
    programs_of_the_user_are_found,
    another_project_sees_nothing_of_it,
    links_in_it_lead_nowhere_new,
    what_rules_say_of_a_name_counts,
    tools_see_the_same_files,
    what_a_command_makes_in_it_is_not_made_outside,
    a_damaged_home_is_said,
    it_is_shown_and_removed,
    a_full_one_is_said,
    other_directories_are_the_sessions_own,
);

fn run_in(scene: &Scene, project: &Path, script: &str) -> Result<Finished> {
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
    Finished::run(command.current_dir(project))
}

fn run(scene: &Scene, script: &str) -> Result<Finished> {
    run_in(scene, &scene.project(), script)
}

/// Runs a script outside of any sandbox.
fn outside(scene: &Scene, script: &str) -> Result<Finished> {
    let mut command = scene.program("/bin/sh".as_ref());
    scene.enter(&mut command);
    // A control changes the home that it is started in.
    let script = format!("test \"$HOME\" = '{}' || exit 9; {script}", scene.home().display());
    Finished::run(command.args(["-c", &script]))
}

/// Returns the private homes in the scene.
fn homes(scene: &Scene) -> Result<Vec<PathBuf>> {
    let homes = fs::read_dir(scene.home().join(".local/state/portcullis/homes"))?;
    homes.map(|entry| Ok(entry?.path())).collect()
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))
}

fn state_of_tools_is_kept_for_the_project(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let write = "mkdir -p ~/.tool/a ~/go/pkg && echo one > ~/.tool/a/x && mv ~/.tool/a ~/.tool/b && \
                 ln ~/.tool/b/x ~/.tool/y && ln -s b/x ~/.tool/l && git init -q ~/.tool/repo && \
                 printf '[alias]\\nx = !true\\n' >> ~/.tool/repo/.git/config && rm ~/.tool/y && echo did";
    let ran = run(&scene, write)?.ended_with(0)?;
    ensure!(ran.stdout == "did\n" && ran.stderr.is_empty(), "{ran:?}");
    for name in [".tool", "go"] {
        ensure!(!scene.home().join(name).exists(), "{name} is in the user's home");
    }
    let ran = run(&scene, "cat ~/.tool/l; ls ~/go")?.ended_with(0)?;
    ensure!(ran.stdout == "one\npkg\n", "{ran:?}");
    Ok(())
}

fn what_the_user_keeps_stays_as_it_is(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in [".bashrc", ".config/tool/settings", "Documents/letter", ".profile"] {
        scene.write(&scene.home().join(name), "mine\n")?;
    }
    let script = "for name in .bashrc .bash_profile .zshenv .ssh/config .gitconfig .config/git/config \
                  .config/autostart/x .config/fish/config.fish .local/share/systemd/x .aws/credentials .netrc \
                  Documents/letter new; do mkdir -p ~/$(dirname $name); echo theirs > ~/$name; \
                  test -s ~/$name && echo made $name; done; rm -rf ~/.config ~/.profile; \
                  mkdir -p ~/.config/tool; echo theirs > ~/.config/tool/settings; cat ~/.config/tool/settings";
    let ran = run(&scene, script)?;
    ensure!(ran.stdout == "theirs\n", "{ran:?}");
    let names = [".bashrc", ".config/tool/settings", "Documents/letter", ".profile"];
    for name in names {
        ensure!(text(&scene.home().join(name))? == "mine\n", "{name}");
    }
    // What was refused was not made in the private home either.
    for place in homes(&scene)? {
        for name in [".bashrc", ".bash_profile", ".ssh/config", ".gitconfig", ".config/git/config", "new"] {
            ensure!(!place.join("home").join(name).exists(), "{name} was made");
        }
    }
    outside(&scene, script)?;
    ensure!(text(&scene.home().join(".bashrc"))? == "theirs\n", "control");
    Ok(())
}

fn a_cache_is_seen_and_not_poisoned(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let cache = scene.home().join(".npm/_cacache");
    for name in ["content/a", "content/b", "index/c"] {
        scene.write(&cache.join(name), "clean\n")?;
    }
    let poison = "cd ~/.npm/_cacache && cat content/a && echo evil > content/a && rm content/b && \
                  echo evil > content/d && mv index/c index/e && chmod 700 content && cat content/a";
    let ran = run(&scene, poison)?.ended_with(0)?;
    ensure!(ran.stdout == "clean\nevil\n", "{ran:?}");
    for name in ["content/a", "content/b", "index/c"] {
        ensure!(text(&cache.join(name))? == "clean\n", "{name}");
    }
    ensure!(!cache.join("content/d").exists() && !cache.join("index/e").exists(), "the cache has more");
    // The project keeps what it did.
    let ran = run(&scene, "cd ~/.npm/_cacache && cat content/a content/d; ls content index")?;
    ensure!(ran.stdout == "evil\nevil\ncontent:\na\nd\n\nindex:\ne\n", "{ran:?}");
    outside(&scene, poison)?;
    ensure!(text(&cache.join("content/a"))? == "evil\n", "control");
    Ok(())
}

/// The state directory on a file system that cannot hold the changes of an overlay, because it is one itself.
const ON_AN_OVERLAY: &str = r#"
    layers="$HOME/layers" && mkdir -p "$layers" "$HOME/.local/state" && mount -t tmpfs none "$layers" &&
    mkdir "$layers/lower" "$layers/upper" "$layers/work" &&
    mount -t overlay -o "userxattr,lowerdir=$layers/lower,upperdir=$layers/upper,workdir=$layers/work" none \
        "$HOME/.local/state" || exit 99
    cache=.npm/_cacache/a
    "$PORTCULLIS" run --ask deny -- sh -c "cat ~/$cache; echo own > ~/$cache && cat ~/$cache"
    "$PORTCULLIS" doctor
"#;

fn caches_start_empty_where_they_cannot_be_layered(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let file = scene.home().join(".npm/_cacache/a");
    scene.write(&file, "the user's\n")?;
    let seen = run(&scene, "cat ~/.npm/_cacache/a")?;
    ensure!(seen.stdout == "the user's\n", "control: {seen:?}");
    let mut words = vec!["--mount"];
    if user.is_stranger() || !rustix::process::geteuid().is_root() {
        words.extend(["--user", "--map-current-user", "--keep-caps"]);
    }
    let mut command = scene.user().command("unshare".as_ref());
    command.args(words).args(["--", "bash", "-c", ON_AN_OVERLAY]);
    scene.enter(&mut command);
    command.env("PORTCULLIS", portcullis(user)?).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let ran = Finished::run(&mut command)?;
    ensure!(ran.code() != 99, "an overlay cannot be mounted, also not in a user namespace: {ran:#?}");
    let mut lines = ran.stdout.lines();
    ensure!(lines.next() == Some("own") && ran.stderr.contains("No such file"), "{ran:#?}");
    ensure!(lines.any(|line| line.starts_with("your caches") && line.contains("not found")), "{ran:#?}");
    ensure!(text(&file)? == "the user's\n", "the user's cache has changed");
    Ok(())
}

fn programs_of_the_user_are_found(user: User) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new(user)?;
    let (bin, tool) =
        (scene.home().join(".local/bin"), scene.home().join(".npm-global/lib/node_modules/t/bin/t"));
    for program in [bin.join("plain"), tool.clone()] {
        scene.write(&program, "#!/bin/sh\necho \"ran $0\"\n")?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    }
    scene.write(&scene.home().join(".npm-global/bin/other"), "")?;
    symlink("../lib/node_modules/t/bin/t", scene.home().join(".npm-global/bin/t"))?;
    let script = "PATH=$HOME/.local/bin:$HOME/.npm-global/bin:$PATH; plain; t; echo mine > ~/.local/bin/mine && \
                  cat ~/.local/bin/mine";
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", script])?;
    let path = format!("{}:{}:/usr/bin:/bin", bin.display(), scene.home().join(".npm-global/bin").display());
    let ran = Finished::run(command.env("PATH", path))?;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    ensure!(lines.len() == 3 && lines.iter().take(2).all(|line| line.starts_with("ran ")), "{ran:?}");
    ensure!(lines.last() == Some(&"mine") && !bin.join("mine").exists(), "{ran:?}");
    Ok(())
}

fn another_project_sees_nothing_of_it(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    run(&scene, "mkdir ~/.tool && echo secret > ~/.tool/x && echo evil > ~/.toolrc")?.ended_with(0)?;
    let other = scene.at("other");
    fs::create_dir(&other)?;
    user.own(&other)?;
    let find = format!("find {} -name .tool", scene.home().join(".local/state").display());
    // Nothing of it is in the programs and libraries of the machine. In `/var/tmp` are the places of tests that run at
    // the same time.
    let everywhere = "find / ! -readable -prune -o -path /proc -prune -o -path /sys -prune -o -path /usr -prune \
                      -o -path /opt -prune -o -path /var/tmp -prune -o -name x -path '*.tool*' -print";
    let here = format!("find {} -name x -path '*.tool*'", scene.at("").display());
    let script = format!("cat ~/.tool/x ~/.toolrc; ls -A ~; {everywhere}; {here}; {find}");
    let ran = run_in(&scene, &other, &script)?;
    ensure!(!ran.stdout.contains("tool") && !ran.stdout.contains("secret"), "{ran:?}");
    let control = outside(&scene, &find)?;
    ensure!(control.stdout.contains(".tool"), "control: {control:?}");
    Ok(())
}

fn links_in_it_lead_nowhere_new(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.home().join("Documents/letter"), "mine\n")?;
    scene.write(&scene.home().join(".bashrc"), "mine\n")?;
    let home = scene.home();
    let script = format!(
        "mkdir ~/.links; ln -s {0}/Documents ~/.links/d; ln -s {0}/.bashrc ~/.links/b; ln -s / ~/.links/r; \
         ln -s {0}/Documents ~/.pyenv; cat ~/.links/d/letter; echo evil > ~/.links/b; echo evil > ~/.links/d/new; \
         echo evil > ~/.links/r{0}/.profile; ln {0}/.bashrc ~/.links/h; mv ~/.links ~/Documents; \
         ln project ~/.links/p; true",
        home.display()
    );
    let control = Scene::new(user)?;
    for name in ["Documents/letter", ".bashrc"] {
        control.write(&control.home().join(name), "mine\n")?;
    }
    let followed = outside(&control, &script.replace(&path_text(&home), &path_text(&control.home())))?;
    ensure!(followed.stdout.contains("mine"), "the control: {followed:?}");
    ensure!(text(&control.home().join(".bashrc"))? == "evil\n", "the control: {followed:?}");
    let ran = run(&scene, &script)?;
    ensure!(!ran.stdout.contains("mine"), "{ran:?}");
    ensure!(text(&home.join(".bashrc"))? == "mine\n", "{ran:?}");
    ensure!(!home.join(".profile").exists() && !home.join("Documents/new").exists(), "{ran:?}");
    // A tool of the host does not follow them either, in its own view of the files.
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for name in [".links/b", ".links/d/letter"] {
        let path = home.join(name);
        let read = json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
        let reply = host.call("file/open", &read)?;
        ensure!(reply.get("result").is_none(), "{reply}");
        host.call("file/write", &json!({ "callId": "w", "path": path, "content": "evil" }))?;
    }
    ensure!(text(&home.join(".bashrc"))? == "mine\n", "a tool wrote it");
    drop(host);
    // Where a toolchain is shown now, a link was left.
    scene.write(&home.join(".pyenv/bin/tool"), "")?;
    let mut command = scene.portcullis_command(&[
        "run",
        "--ask",
        "deny",
        "--",
        "ls",
        "-a",
        &path_text(&home.join(".pyenv")),
    ])?;
    let ran =
        Finished::run(command.env("PATH", format!("{}:/usr/bin:/bin", home.join(".pyenv/bin").display())))?;
    ensure!(ran.stdout.contains("bin") && !ran.stdout.contains("letter"), "{ran:?}");
    Ok(())
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

fn what_rules_say_of_a_name_counts(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    for name in [".npm/_cacache/a", ".denied/x", ".shown/x"] {
        scene.write(&scene.home().join(name), "machine\n")?;
    }
    let settings = json!({ "filesystem": {
        "denyRead": ["~", "~/.denied"], "denyWrite": [],
        "allowRead": [".", "~/.shown"], "allowWrite": [".", "~/.npm"],
    } });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    let script = "cat ~/.shown/x ~/.npm/_cacache/a; rm ~/.npm/_cacache/a; echo x > ~/.shown/y; \
                  mkdir ~/.denied; echo x > ~/.denied/y; mkdir ~/.other && echo other";
    let ran = run(&scene, script)?;
    ensure!(ran.stdout == "machine\nmachine\nother\n", "{ran:?}");
    ensure!(!scene.home().join(".npm/_cacache/a").exists(), "what may be written is not");
    ensure!(!scene.home().join(".shown/y").exists() && !scene.home().join(".denied/y").exists(), "{ran:?}");
    Ok(())
}

fn tools_see_the_same_files(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let at = |name: &str| scene.home().join(name);
    scene.write(&at(".tool/machine"), "machine\n")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    host.succeed("file/write", &json!({ "callId": "w", "path": at(".tool/own"), "content": "own\n" }))?;
    let tool = path_text(&at(".tool"));
    let (_, seen) = host.run(&format!("cd {tool}; cat own; echo command > other; ls"))?;
    ensure!(seen == "own\nother\nown\n", "{seen}");
    let read = |path: PathBuf| json!({ "callId": "r", "path": path, "intent": { "kind": "read" } });
    host.succeed("file/open", &read(at(".tool/other")))?;
    let reply = host.call("file/open", &read(at(".tool/machine")))?;
    ensure!(reply.to_string().contains("not"), "{reply}");
    ensure!(!reply.to_string().contains("machine\\n") && reply.get("result").is_none(), "{reply}");
    ensure!(!at(".tool/own").exists(), "a tool wrote to the user's home");
    for (verb, path, answer) in
        [("read", ".tool/machine", "allow"), ("write", ".tool/x", "allow"), ("write", ".bashrc", "deny")]
    {
        let checked = scene.portcullis(&["check", verb, &path_text(&at(path))])?;
        ensure!(checked.stdout.starts_with(answer), "{verb} {path}: {checked:?}");
    }
    Ok(())
}

/// The names stand in the command, so the host sees them before the command starts. It looks at the user's home while
/// the command runs: what is made for a command goes when the command has left it empty.
fn what_a_command_makes_in_it_is_not_made_outside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let names = [".new-tool", ".config", "go"];
    let make = "mkdir -p ~/.new-tool ~/.config/new-tool ~/go/bin && git init -q ~/.new-tool/repository";
    let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
    let script = format!("{make} && touch made; until [ -e seen ]; do sleep 0.05; done");
    let id = host.begin(&script, &json!({ "PATH": "/usr/bin:/bin", "HOME": scene.home() }))?;
    let made = scene.project().join("made");
    Deadline::start().until("the directories", || Ok(made.exists().then_some(())))?;
    let outside_now: Vec<&str> =
        names.into_iter().filter(|name| scene.home().join(name).symlink_metadata().is_ok()).collect();
    scene.write(&scene.project().join("seen"), "")?;
    let (_, output) = host.finish(id)?;
    ensure!(outside_now.is_empty(), "{outside_now:?}; {output}");
    outside(&scene, make)?.ended_with(0)?;
    ensure!(names.iter().all(|name| scene.home().join(name).is_dir()), "the control");
    Ok(())
}

fn a_damaged_home_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    run(&scene, "mkdir ~/.tool")?.ended_with(0)?;
    let place = homes(&scene)?.pop().context("a private home")?;
    for what in ["a file", "a link"] {
        let home = place.join("home");
        match home.symlink_metadata()?.is_dir() {
            true => fs::remove_dir_all(&home)?,
            false => fs::remove_file(&home)?,
        }
        match what {
            "a file" => fs::write(&home, "")?,
            _ => symlink(scene.outside(), &home)?,
        }
        let ran = run(&scene, "mkdir ~/.tool; echo went on")?;
        ensure!(ran.stdout == "went on\n", "{what}: {ran:?}");
        ensure!(ran.stderr.contains("is not a directory"), "{what}: {ran:?}");
        ensure!(!scene.outside().join(".tool").exists() && !scene.home().join(".tool").exists(), "{what}");
    }
    Ok(())
}

fn other_directories_are_the_sessions_own(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    // Who works in /var/tmp sees the machine's.
    let _here = machine_tmp::live_in();
    let directory = tempfile::Builder::new().prefix("portcullis-it-").tempdir_in("/tmp")?;
    user.own(directory.path())?;
    let (home, project) = (directory.path().join("home"), directory.path().join("home/project"));
    scene.write(&project.join("file"), "")?;
    let name = scene.at("").file_name().context("a name")?.to_string_lossy().into_owned();
    let script = format!(
        "for place in /var/tmp $XDG_RUNTIME_DIR /dev/shm; do echo x > $place/{name}.x && cat $place/{name}.x; done; \
         ls /var/tmp; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); \
         bind(S, pack_sockaddr_un(\"$ENV{{XDG_RUNTIME_DIR}}/s\")) and print \"bound\\n\"'"
    );
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", &script])?;
    let ran = Finished::run(command.env("HOME", &home).current_dir(&project))?;
    ensure!(ran.stdout == format!("x\nx\nx\n{name}.x\nbound\n"), "{ran:?}");
    ensure!(!Path::new("/var/tmp").join(format!("{name}.x")).exists(), "it is the machine's");
    Ok(())
}

fn it_is_shown_and_removed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    run(&scene, "mkdir -p ~/.tool/a && chmod 000 ~/.tool/a && mkdir ~/.npm")?.ended_with(0)?;
    let shown = scene.portcullis(&["home", "show"])?.ended_with(0)?;
    ensure!(shown.stdout.contains(&path_text(&scene.project())), "{shown:?}");
    let host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let cleared = scene.portcullis(&["home", "clear"])?;
    ensure!(cleared.code() == 1 && cleared.stdout.contains("a session uses it"), "{cleared:?}");
    drop(host);
    let cleared = scene.portcullis(&["home", "clear", "--all", "--json"])?.ended_with(0)?;
    ensure!(cleared.stdout.contains("\"removed\":true") && homes(&scene)?.is_empty(), "{cleared:?}");
    let ran = run(&scene, "ls -A ~")?.ended_with(0)?;
    ensure!(!ran.stdout.contains(".tool"), "{ran:?}");
    Ok(())
}

fn a_full_one_is_said(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let settings = json!({ "home": { "maxMib": 1 } });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())?;
    run(&scene, "mkdir ~/.tool && head -c 3000000 /dev/zero > ~/.tool/x")?;
    let place = homes(&scene)?.pop().context("a private home")?;
    fs::write(place.join("size"), "3000000")?;
    let ran = run(&scene, "echo went on; mkdir ~/.other")?;
    ensure!(ran.stdout == "went on\n" && ran.stderr.contains("it is full: "), "{ran:?}");
    ensure!(!scene.home().join(".other").exists(), "{ran:?}");
    scene.portcullis(&["home", "clear"])?.ended_with(0)?;
    let ran = run(&scene, "mkdir ~/.other && echo did")?;
    ensure!(ran.stdout == "did\n" && !ran.stderr.contains("full"), "{ran:?}");
    Ok(())
}
