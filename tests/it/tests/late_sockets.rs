//! Unix sockets of the user's programs that are bound while a session runs.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use anyhow::{Result, ensure};
use portcullis_it::{Deadline, Finished, Scene, User};

as_each_user!(
    a_socket_that_appears_later_gets_no_open_name,
    another_file_in_its_place_hides_no_name,
    a_closed_directory_hides_no_name,
);

/// Binds a socket that says that it has been reached.
fn serve(user: User, path: &Path) -> Result<()> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))?;
    user.own(path)?;
    // It ends with the test process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _reply = stream.write_all(b"REACHED\n");
        }
    });
    Ok(())
}

const CONNECT: &str = "perl -MSocket -e 'for (@ARGV) { socket(S, AF_UNIX, SOCK_STREAM, 0); \
    connect(S, pack_sockaddr_un($_)) and print <S>; }'";

/// A command gives a socket that was bound after the sandbox was made another name. The next sandbox closes the socket,
/// and must close that name as well.
fn a_socket_that_appears_later_gets_no_open_name(user: User) -> Result<()> {
    no_name_is_open(user, "ln run/socket keep/linked; mv run moved")
}

/// The command also puts another file in the place of the socket.
fn another_file_in_its_place_hides_no_name(user: User) -> Result<()> {
    no_name_is_open(user, "ln run/socket keep/linked && rm run/socket && touch run/socket")
}

/// The command closes the directory of the new name, so that only its owner can open it again.
fn a_closed_directory_hides_no_name(user: User) -> Result<()> {
    no_name_is_open(user, "ln run/socket keep/linked && chmod 000 keep")
}

fn no_name_is_open(user: User, change: &str) -> Result<()> {
    let scene = Scene::new(user)?;
    let project = scene.project();
    for name in ["run", "keep"] {
        fs::create_dir(project.join(name))?;
        user.own(&project.join(name))?;
    }
    let script = format!(
        "touch started; i=0; while [ ! -e go ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; {change}; true"
    );
    let command = scene.portcullis_command(&["run", "--ask", "deny", "--", "sh", "-c", &script])?;
    std::thread::scope(|scope| -> Result<()> {
        let mut command = command;
        let running = scope.spawn(move || Finished::run(&mut command));
        Deadline::start().until("the command", || Ok(project.join("started").exists().then_some(())))?;
        serve(user, &project.join("run/socket"))?;
        scene.write(&project.join("go"), "")?;
        running.join().map_err(|_| anyhow::anyhow!("the command panicked"))??;
        Ok(())
    })?;
    let connect = format!(
        "chmod 700 keep; {CONNECT} $PWD/run/socket $PWD/moved/socket $PWD/keep/linked keep/linked moved/socket"
    );
    let inside = scene.portcullis(&["run", "--ask", "deny", "--", "sh", "-c", &connect])?;
    let mut control = scene.program("/bin/sh".as_ref());
    scene.enter(&mut control);
    let control = Finished::run(control.args(["-c", &connect]))?;
    // If the command was refused all of this, only the first name is left.
    ensure!(control.stdout.contains("REACHED"), "control: {control:#?}");
    ensure!(!inside.stdout.contains("REACHED"), "{inside:#?}");
    Ok(())
}
