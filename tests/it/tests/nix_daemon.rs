//! The socket of Nix's daemon, at the path that a rule names: closed without the rule, reached with it, whether the
//! daemon binds it there, or it is mounted there from elsewhere, as into a container.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User, portcullis};
use serde_json::{Value, json};

as_each_user!(its_socket_is_reached_by_a_rule_alone, a_mounted_socket_is_reached_by_a_rule_alone);

/// The path that docs/coming-from.md names.
const SOCKET: &str = "/nix/var/nix/daemon-socket/socket";
const DOCUMENT: &str = include_str!("../../../docs/coming-from.md");

/// A daemon that binds the socket and answers the first word of a client (`WORKER_MAGIC_1`) with its own
/// (`WORKER_MAGIC_2`).
const DAEMON: &str = r#"use Socket; my $path = $ARGV[0];
socket(L, AF_UNIX, SOCK_STREAM, 0); bind(L, pack_sockaddr_un($path)) or die "bind: $!";
chmod 0666, $path; listen(L, 5); exit if fork; close STDOUT; close STDERR;
while (accept(C, L)) {
  sysread(C, $word, 8);
  syswrite(C, pack("Q<", 0x6478696f)) if unpack("Q<", $word) == 0x6e697863;
  close C;
}"#;

/// Builds a root in `$1` with everything at the top and an empty `/nix`, and starts the daemon there.
const ROOT: &str = r#"set -e; root=$1; shift
mount -t tmpfs none "$root"; cd "$root"
for entry in /*; do
  name=${entry#/}
  if [ -L "$entry" ]; then cp -P "$entry" "$name"
  elif [ -d "$entry" ]; then mkdir "$name"; mount --rbind "$entry" "$name"
  fi
done
mkdir -p nix/var/nix/daemon-socket nix/made-elsewhere old
here=$PROJECT; (PATH=$PATH:/usr/sbin:/sbin; pivot_root . old); umount -l /old; cd "$here"
perl -e "$DAEMON" "$BOUND"
[ "$BOUND" = "$SOCKET" ] || eval "$MOUNT"
exec "$@""#;

/// Two ways in which a container gets the socket: itself, or its directory.
const MOUNTS: [&str; 2] = [
    r#"touch "$SOCKET"; mount --bind "$BOUND" "$SOCKET""#,
    r#"mv "$BOUND" "${BOUND%/*}/socket"; mount --bind "${BOUND%/*}" "${SOCKET%/*}""#,
];

/// Greets the daemon as Nix's client does.
const GREET: &str = "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); \
    connect(S, pack_sockaddr_un($ARGV[0])) or die qq(no daemon: $!\\n); \
    syswrite(S, pack(q(Q<), 0x6e697863)); sysread(S, $answer, 8); \
    print qq(ANSWERED\\n) if unpack(q(Q<), $answer) == 0x6478696f'";

/// Runs a command where the daemon's socket is at [`SOCKET`]: bound there, or `mounted` in one of two ways.
fn run(scene: &Scene, mounted: Option<&str>, program: &Path, words: &[&str]) -> Result<Finished> {
    let mut command = scene.user().command("unshare".as_ref());
    scene.enter(&mut command);
    command.env("PROJECT", scene.project()).env("DAEMON", DAEMON).env("SOCKET", SOCKET);
    command.env("BOUND", mounted.map_or(SOCKET, |_| "/nix/made-elsewhere/bound"));
    command.env("MOUNT", mounted.unwrap_or_default());
    // The daemon ends with the command.
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--",
        "sh",
        "-c",
        ROOT,
    ]);
    Finished::run(command.arg("sh").arg(scene.at("root")).arg(program).args(words))
}

fn a_mounted_socket_is_reached_by_a_rule_alone(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    fs::create_dir(scene.at("root"))?;
    user.own(&scene.at("root"))?;
    let greet = format!("{GREET} {SOCKET}");
    for mounted in MOUNTS {
        // The name that the kernel lists does not exist.
        let hide = format!("{mounted}; mount -t tmpfs none /nix/made-elsewhere");
        let control = run(&scene, Some(&hide), "/bin/sh".as_ref(), &["-c", &greet])?;
        ensure!(control.stdout == "ANSWERED\n", "the control of {mounted}: {control:#?}");
        for (network, is_reached) in [(json!({}), false), (json!({ "allowUnixSockets": [SOCKET] }), true)] {
            let settings = json!({ "network": network, "filesystem":
                { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."] } });
            scene.write(&scene.at("settings.json"), &settings.to_string())?;
            let file = scene.at("settings.json").display().to_string();
            let words = ["run", "--ask", "deny", "--settings", &file, "--", "bash", "-c", &greet];
            let told = run(&scene, Some(&hide), &portcullis(user)?, &words)?;
            ensure!((told.stdout == "ANSWERED\n") == is_reached, "{mounted}, {network}: {told:#?}");
            ensure!(is_reached || told.stderr.contains("no daemon"), "the program ran: {told:#?}");
        }
    }
    Ok(())
}

fn its_socket_is_reached_by_a_rule_alone(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    fs::create_dir(scene.at("root"))?;
    user.own(&scene.at("root"))?;
    let greet = format!("{GREET} {SOCKET}");
    let control = run(&scene, None, "/bin/sh".as_ref(), &["-c", &greet])?;
    ensure!(control.stdout == "ANSWERED\n", "the control: {control:#?}");
    let rule: Value = json!({ "allowUnixSockets": [SOCKET] });
    let shown = format!("\"network\": {{ \"allowUnixSockets\": [\"{SOCKET}\"] }}");
    ensure!(DOCUMENT.contains(&shown), "the document names another rule than {shown}");
    let other = json!({ "allowUnixSockets": ["/nix/var/nix/daemon-socket/other"] });
    for elsewhere in ["open", "programs"] {
        for (network, is_reached) in [(json!({}), false), (other.clone(), false), (rule.clone(), true)] {
            let settings = json!({ "network": network, "filesystem":
                { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "elsewhere": elsewhere } });
            scene.write(&scene.at("settings.json"), &settings.to_string())?;
            let file = scene.at("settings.json").display().to_string();
            let words = ["run", "--ask", "deny", "--settings", &file, "--", "bash", "-c", &greet];
            let told = run(&scene, None, &portcullis(user)?, &words)?;
            let is_answered = told.stdout == "ANSWERED\n";
            ensure!(is_answered == is_reached, "{settings}: {told:#?}");
            ensure!(is_reached || told.stderr.contains("no daemon"), "the program ran: {told:#?}");
        }
    }
    // The rule is the user's: a project's own file opens no socket.
    let own = json!({ "network": rule }).to_string();
    scene.write(&scene.project().join(".pi/sandbox.json"), &own).context("the project's file")?;
    let told = run(&scene, None, &portcullis(user)?, &["run", "--ask", "deny", "--", "bash", "-c", &greet])?;
    ensure!(!told.stdout.contains("ANSWERED"), "{told:#?}");
    Ok(())
}
