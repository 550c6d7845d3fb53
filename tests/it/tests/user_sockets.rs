//! Sockets of the user's own programs (an agent for keys, a container engine, a bus) cannot be reached through
//! the directories that belong to a session: the private home, the caches in it, the runtime directory, `/var/tmp`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use portcullis_it::{Deadline, Finished, Interface, Scene, Serve, User};
use serde_json::json;

as_each_user!(
    sockets_of_the_user_are_not_reached,
    what_is_bound_later_is_not_reached_by_the_next_command,
    what_a_command_binds_is_not_where_the_user_looks
);

/// Binds a socket that says who has been reached, and counts.
fn serve(user: User, path: &Path) -> Result<Arc<AtomicUsize>> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))?;
    user.own(path)?;
    let count = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&count);
    // It ends with the test process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::Relaxed);
            let _reply = stream.write_all(b"REACHED\n");
        }
    });
    Ok(count)
}

/// Perl that connects to each of its arguments, by the path and by its directory.
const CONNECT: &str = "perl -MSocket -e 'for (@ARGV) { ($d, $n) = m|(.*)/(.*)|; \
    for $p ($_, chdir($d) ? $n : ()) { socket(S, AF_UNIX, SOCK_STREAM, 0); \
    connect(S, pack_sockaddr_un($p)) and print <S>; } }'";

fn sockets_of_the_user_are_not_reached(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let runtime = scene.at("runtime");
    let shared = |parent: &str| tempfile::Builder::new().prefix("portcullis-it-").tempdir_in(parent);
    // `/var/tmp` is the scene's own place, and then the machine's: another one stands for it.
    let (memory, temporary) = (shared("/dev/shm")?, shared("/tmp")?);
    let mut places: Vec<PathBuf> = [
        ".gnupg/S.gpg-agent",
        ".docker/run/docker.sock",
        ".ssh/agent/s",
        ".cache/app/s",
        ".npm/_cacache/s",
        ".local/bin/s",
        ".local/share/pnpm/store/s",
        "go/pkg/mod/s",
        ".config/app/s",
    ]
    .iter()
    .map(|name| scene.home().join(name))
    .collect();
    places.extend([runtime.join("bus"), runtime.join("app/s")]);
    places.extend([memory.path().join("s"), temporary.path().join("s")]);
    for directory in [memory.path(), temporary.path()] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    }
    let mut counts = Vec::new();
    for place in &places {
        let directory = place.parent().unwrap_or(place);
        scene.write(&directory.join("file"), "")?;
        counts.push(serve(user, place)?);
    }
    let paths: Vec<String> = places.iter().map(|path| format!("'{}'", path.display())).collect();
    let script = format!("{CONNECT} {}", paths.join(" "));
    let mut control = scene.user().command("/bin/sh".as_ref());
    let control = Finished::run(control.args(["-c", &script]))?;
    ensure!(control.stdout.matches("REACHED").count() == 2 * places.len(), "the control: {control:?}");
    let before: Vec<usize> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    // The links are in the private home, and there before the command that follows them.
    let links = format!(
        "mkdir -p ~/.links; for path in {}; do ln -s $path ~/.links/; ln $path ~/.links/h; done",
        paths.join(" ")
    );
    for script in [script, format!("{CONNECT} ~/.links/* $XDG_RUNTIME_DIR/bus")] {
        let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "bash", "-c"])?;
        let ran = Finished::run(command.arg(format!("{links}; {script}")).env("XDG_RUNTIME_DIR", &runtime))?;
        ensure!(!ran.stdout.contains("REACHED"), "{ran:?}");
    }
    let after: Vec<usize> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    ensure!(before == after, "{places:?}: {before:?}, and {after:?}");
    Ok(())
}

/// A session keeps its sandbox for all its commands. The control is the command that already runs.
fn what_is_bound_later_is_not_reached_by_the_next_command(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    scene.write(&scene.project().join("run/file"), "")?;
    scene.write(&scene.project().join("away/file"), "")?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let names = ["late", "run/linked", "kept", "away/moved", "moved/moved"];
    let paths: Vec<String> =
        names.iter().map(|name| format!("'{}'", scene.project().join(name).display())).collect();
    let connect = format!("{CONNECT} {}", paths.join(" "));
    host.run("true")?;
    let running = host.begin(
        &format!("touch started; while ! [ -e go ]; do sleep 0.1; done; ln run/linked kept; mv run/linked kept; mv away moved; {connect}"),
        &json!({}),
    )?;
    let started = scene.project().join("started");
    Deadline::start().until("the command", || Ok(started.exists().then_some(())))?;
    let mut counts = Vec::new();
    for name in ["late", "run/linked", "away/moved"] {
        counts.push(serve(user, &scene.project().join(name))?);
    }
    scene.write(&scene.project().join("go"), "")?;
    let (_, output) = host.finish(running)?;
    ensure!(output.matches("REACHED").count() == 6, "the control: {output}");
    for _ in 0..2 {
        let (_, output) = host.run(&connect)?;
        ensure!(!output.contains("REACHED"), "{output}");
        // Another program takes the name.
        fs::remove_file(scene.project().join("late"))?;
        counts.push(serve(user, &scene.project().join("late"))?);
    }
    let reached: usize = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    ensure!(reached == 6, "{reached}");
    host.close()?;
    Ok(())
}

/// Where the user's programs look for an agent, a command cannot pretend to be one.
fn what_a_command_binds_is_not_where_the_user_looks(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let runtime = scene.at("runtime");
    scene.write(&runtime.join("file"), "")?;
    scene.write(&scene.home().join(".npm/_cacache/file"), "")?;
    let places =
        ["$XDG_RUNTIME_DIR/agent", "$HOME/.gnupg/S.gpg-agent", "$HOME/.npm/_cacache/s", "$HOME/.tool/s"];
    let bind = format!(
        "mkdir -p $HOME/.gnupg $HOME/.tool $HOME/.npm/_cacache; perl -MSocket -e 'for (@ARGV) {{ \
         socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un($_)) and print qq(BOUND\\n) }}' {}",
        places.join(" ")
    );
    let paths = [
        runtime.join("agent"),
        scene.home().join(".gnupg/S.gpg-agent"),
        scene.home().join(".npm/_cacache/s"),
        scene.home().join(".tool/s"),
    ];
    let mut command = scene.portcullis_command(&["run", "--ask", "deny", "--", "bash", "-c", &bind])?;
    let ran = Finished::run(command.env("XDG_RUNTIME_DIR", &runtime))?;
    ensure!(ran.stdout.contains("BOUND"), "nothing is bound inside either: {ran:?}");
    for path in &paths {
        ensure!(path.symlink_metadata().is_err(), "{}: {ran:?}", path.display());
    }
    let mut control = scene.program("/bin/bash".as_ref());
    scene.enter(&mut control);
    Finished::run(control.args(["-c", &bind]).env("XDG_RUNTIME_DIR", &runtime))?;
    ensure!(paths.iter().all(|path| path.symlink_metadata().is_ok()), "the control");
    Ok(())
}
