//! The machine's `/tmp` in place of the session's own: what is shared, and what stays closed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::RwLockWriteGuard;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, machine_tmp};
use serde_json::{Value, json};

as_each_user!(
    files_are_shared_both_ways,
    sockets_and_private_files_stay_closed,
    names_that_programs_execute_stay_protected,
    it_is_said,
    no_project_shares_it,
);

const ASK: i32 = 10;
const DENY: i32 = 20;

/// Entries of `/tmp` that are removed at the end.
struct Shared {
    scene: Scene,
    name: String,
    /// Held until the test ends.
    _alone: RwLockWriteGuard<'static, ()>,
}

impl Shared {
    fn new(user: User) -> Result<Self> {
        // Scenes usually lie in `/var/tmp`, which is the session's own here.
        let places = ["/srv", env!("CARGO_TARGET_TMPDIR")].map(Path::new);
        let scene = places.iter().find_map(|place| Scene::below(place, user).ok());
        let scene = scene.context("a directory outside of /tmp and /var/tmp that can be written")?;
        let random = scene.project().to_string_lossy().replace('/', "-");
        let name = format!("portcullis-it{random}-{}", std::process::id());
        Ok(Self { scene, name, _alone: machine_tmp::share() })
    }

    /// A path in the machine's `/tmp`.
    fn at(&self, name: &str) -> PathBuf {
        Path::new("/tmp").join(format!("{}-{name}", self.name))
    }

    /// Writes a file of the user in the machine's `/tmp`.
    fn write(&self, name: &str, text: &str, mode: u32) -> Result<PathBuf> {
        let file = self.at(name);
        self.scene.write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
        Ok(file)
    }

    fn settings(&self, tmp: &str) -> Result<()> {
        let settings = json!({ "network": {}, "filesystem": { "denyRead": ["/home"], "allowRead": [".", "~/.pi"],
            "allowWrite": ["."], "tmp": tmp } });
        self.scene.write(&self.scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
    }

    fn run(&self, script: &str) -> Result<Finished> {
        self.scene.portcullis(&["run", "--ask", "deny", "--", "bash", "-c", script])
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let entries = fs::read_dir("/tmp").into_iter().flatten().flatten();
        let own = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&self.name));
        for entry in own.map(|entry| entry.path()) {
            let _gone = if entry.is_dir() { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
        }
    }
}

/// The control is the session's own directory.
fn files_are_shared_both_ways(user: User) -> Result<()> {
    let shared = Shared::new(user)?;
    let given = shared.write("given", "GIVEN", 0o644)?;
    let (given, made) = (given.display().to_string(), shared.at("made"));
    let script = format!(
        "cat '{given}'; echo MADE > '{0}' && echo written; cat '{0}'; f=$(mktemp) && echo $f; ls -d $TMPDIR",
        made.display()
    );
    shared.settings("session")?;
    let own = shared.run(&script)?;
    ensure!(!own.stdout.contains("GIVEN") && own.stdout.contains("written"), "{own:#?}");
    ensure!(!made.exists() && own.stdout.contains("\n/tmp/"), "{own:#?}");
    shared.settings("shared")?;
    let told = shared.run(&script)?;
    for part in ["GIVEN", "written", "MADE", "\n/var/tmp/", "\n/var/tmp\n"] {
        ensure!(told.stdout.contains(part), "no `{part}`: {told:#?}");
    }
    ensure!(fs::read_to_string(&made)?.contains("MADE"), "{told:#?}");
    // Tools see the same.
    for (action, path) in [("read", &given), ("write", &given), ("write", &"/tmp/new".to_owned())] {
        shared.scene.portcullis(&["check", action, path])?.ended_with(0)?;
    }
    // The rest of the machine is as it was.
    shared.scene.portcullis(&["check", "write", "/etc/passwd"])?.ended_with(ASK)?;
    shared.scene.portcullis(&["check", "write", "/var/tmp/x"])?.ended_with(0)?;
    Ok(())
}

/// Each attack succeeds outside of the sandbox, and a shared file beside them is read.
fn sockets_and_private_files_stay_closed(user: User) -> Result<()> {
    let shared = Shared::new(user)?;
    shared.settings("shared")?;
    let open = shared.write("open", "OPEN", 0o644)?;
    let secret = shared.write("secret", "SECRET", 0o600)?;
    let inside = shared.write("private/inside", "SECRET", 0o644)?;
    let private = shared.at("private");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700))?;
    shared.scene.user().own(&private)?;
    let sockets = [shared.at("agent"), shared.at("dir/deep/agent"), private.join("agent")];
    for socket in &sockets {
        let directory = socket.parent().context("a directory")?;
        fs::create_dir_all(directory)?;
        for above in directory.ancestors().take_while(|above| *above != Path::new("/tmp")) {
            shared.scene.user().own(above)?;
        }
        let listener = UnixListener::bind(socket)?;
        fs::set_permissions(socket, fs::Permissions::from_mode(0o777))?;
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                drop(stream.write_all(b"REACHED\n"));
            }
        });
    }
    let connect = |socket: &Path| {
        format!(
            "perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => q({})) or die $!; print <$s>'; ",
            socket.display()
        )
    };
    let connects: String = sockets.iter().map(|socket| connect(socket)).collect();
    let script = format!(
        "cat '{}'; cat '{}' '{}'; ls '{}'; {connects} echo x > '{}'; ls -d /tmp/.X11-unix/X0; true",
        open.display(),
        secret.display(),
        inside.display(),
        private.display(),
        secret.display(),
    );
    let mut outside = shared.scene.user().command("bash".as_ref());
    let control = Finished::run(outside.args(["-c", &script]))?;
    ensure!(
        control.stdout.contains("SECRET") && control.stdout.matches("REACHED").count() == 3,
        "{control:#?}"
    );
    fs::write(&secret, "SECRET")?;
    let told = shared.run(&script)?;
    ensure!(told.stdout.contains("OPEN"), "{told:#?}");
    for part in ["SECRET", "REACHED", "inside"] {
        ensure!(!told.stdout.contains(part), "`{part}`: {told:#?}");
    }
    ensure!(fs::read_to_string(&secret)? == "SECRET");
    // Renaming the directories around a closed entry does not open it.
    let moved = format!(
        "mv '{0}' '{0}-2'; mv '{1}' '{1}-2'; cat '{1}-2/inside'; {2}",
        shared.at("dir").display(),
        private.display(),
        connect(&PathBuf::from(format!("{}-2/deep/agent", shared.at("dir").display())))
    );
    let told = shared.run(&moved)?;
    ensure!(!told.stdout.contains("SECRET") && !told.stdout.contains("REACHED"), "{told:#?}");
    for path in [&secret, &inside, &sockets[0], &PathBuf::from("/tmp/.X11-unix/X0")] {
        let told = shared.scene.portcullis(&["check", "read", &path.display().to_string()])?;
        ensure!(
            told.code() == DENY && told.stdout.contains("host.private-tmp"),
            "{}: {told:#?}",
            path.display()
        );
    }
    // An entry that the settings name is open.
    let named = json!({ "network": {}, "filesystem": { "allowRead": ["."], "allowWrite": [".", secret], "tmp": "shared" } });
    shared.scene.write(&shared.scene.home().join(".pi/agent/sandbox/default.json"), &named.to_string())?;
    shared.scene.portcullis(&["check", "read", &secret.display().to_string()])?.ended_with(0)?;
    Ok(())
}

/// Another project of the user lies in `/tmp`. The control is an ordinary file of it.
fn names_that_programs_execute_stay_protected(user: User) -> Result<()> {
    let shared = Shared::new(user)?;
    shared.settings("shared")?;
    let project = shared.at("project");
    shared.write("project/.git/HEAD", "ref: refs/heads/main\n", 0o644)?;
    for directory in
        ["project", "project/.git", "project/.git/hooks", "project/.git/objects", "project/.git/refs"]
    {
        fs::create_dir_all(shared.at(directory))?;
        fs::set_permissions(shared.at(directory), fs::Permissions::from_mode(0o755))?;
        shared.scene.user().own(&shared.at(directory))?;
    }
    let script = format!(
        "cd '{}'; echo x > free; echo evil > .git/hooks/pre-commit; echo evil > .envrc; echo evil > .git/config; true",
        project.display()
    );
    let told = shared.run(&script)?;
    ensure!(project.join("free").exists(), "control: {told:#?}");
    for name in [".git/hooks/pre-commit", ".envrc", ".git/config"] {
        let text = fs::read_to_string(project.join(name)).unwrap_or_default();
        ensure!(!text.contains("evil"), "{name}: {told:#?}");
    }
    Ok(())
}

fn it_is_said(user: User) -> Result<()> {
    let shared = Shared::new(user)?;
    for (word, is_said) in [("session", false), ("shared", true)] {
        shared.settings(word)?;
        let shown = shared.scene.portcullis(&["config", "show"])?.ended_with(0)?;
        ensure!(shown.stdout.contains("`/tmp` is this machine's") == is_said, "{shown:#?}");
        let report = shared.scene.portcullis(&["config", "show", "--json"])?.ended_with(0)?;
        let report: Value = serde_json::from_str(&report.stdout)?;
        let said = report.pointer("/inForce").context("what is in force")?.to_string();
        ensure!(said.contains("/var/tmp") || !is_said, "{said}");
    }
    Ok(())
}

/// An agent may have written the project's settings.
fn no_project_shares_it(user: User) -> Result<()> {
    let shared = Shared::new(user)?;
    let given = shared.write("given", "GIVEN", 0o644)?;
    let own = shared.scene.project().join(".pi/portcullis.json");
    shared.scene.write(&own, r#"{ "filesystem": { "tmp": "shared" } }"#)?;
    let told = shared.run(&format!("cat '{}'", given.display()))?;
    ensure!(!told.stdout.contains("GIVEN") && told.stderr.contains("portcullis.json"), "{told:#?}");
    fs::remove_file(&own)?;
    let layered = shared.scene.home().join(".pi/agent/sandbox/default.json");
    shared.scene.write(&layered, r#"{ "layout": "layered" }"#)?;
    shared.scene.write(
        &shared.scene.project().join(".pi/sandbox.json"),
        r#"{ "filesystem": { "tmp": "shared" } }"#,
    )?;
    let told = shared.run(&format!("cat '{}'", given.display()))?;
    ensure!(!told.stdout.contains("GIVEN"), "{told:#?}");
    Ok(())
}
