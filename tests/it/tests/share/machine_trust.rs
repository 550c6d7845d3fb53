//! The machine's trust file has priority over the user's, also while a session runs.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Interface, Registry, Serve, User};

use super::author::{Author, Build, FIRST_FILE, SECOND_FILE};
use super::{SETTINGS, machine, reads};

as_each_user!(what_the_machine_revokes_is_revoked);

/// Mounts another directory over `/etc` for the program that it starts.
const WITH_ETC: &str = r#"mount --bind "$0" /etc && exec "$@""#;

fn what_the_machine_revokes_is_revoked(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    author.publish(&Build::new("0.1.0"))?;
    let scene = machine(user, &author, &registry)?;
    scene.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), SETTINGS)?;

    // Not all files of the system's `/etc` are readable; the ones that the test needs are.
    let etc = scene.at("etc");
    Command::new("cp").args(["-a", "/etc"]).arg(&etc).output().context("copying `/etc`")?;
    let file = etc.join("portcullis/trust.toml");
    scene.write(&file, "# nobody yet\n")?;
    let own: &[&str] = match rustix::process::geteuid().is_root() && user == User::Caller {
        true => &[],
        false => &["--user", "--map-current-user", "--keep-caps"],
    };
    let etc = etc.to_str().context("a path is text")?;
    let words: Vec<&str> = own.iter().copied().chain(["--mount", "--", "sh", "-c", WITH_ETC, etc]).collect();
    let mut host = Serve::start_through(&scene, "unshare", &words)?;
    let hello = host.hello(Interface::Absent);
    host.succeed("hello", &hello)?;
    ensure!(reads(&mut host, &scene, SECOND_FILE)?, "control: {}", host.errors());
    ensure!(!reads(&mut host, &scene, FIRST_FILE)?, "control: the pack decides");

    // The user trusts the key throughout.
    let key = author.public_key()?;
    scene.write(&file, &format!("[[revoked]]\nkey = \"{}\"\nreason = \"stolen\"\n", key.trim()))?;
    ensure!(!reads(&mut host, &scene, SECOND_FILE)?, "nothing is read any more");
    host.wait("notice", |message| message.to_string().contains("was revoked: stolen"))?;
    host.close()?;
    let listed = scene.portcullis(&["policy", "trust", "list", "--json"])?.ended_with(0)?;
    ensure!(listed.stdout.contains("acme") && !listed.stdout.contains("stolen"), "{listed:?}");
    Ok(())
}
