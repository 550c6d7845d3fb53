//! A registry with TLS, with certificates that the test makes itself.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Certificate, Finished, Registry, Scene, User};

use super::author::{Author, Build};
use super::{REFUSED, lock};

as_each_user!(over_tls);

/// Runs a verb that trusts certificates of this authority.
fn believing(scene: &Scene, authority: &str, arguments: &[&str]) -> Result<Finished> {
    let file = scene.home().join("authority.pem");
    scene.write(&file, authority)?;
    let mut command = scene.portcullis_command(arguments)?;
    Finished::run(command.env("SSL_CERT_FILE", file))
}

fn over_tls(user: User) -> Result<()> {
    let plain = Registry::start()?;
    let author = Author::new(user, &plain)?;
    let scene = author.scene();
    let file = author.build(&Build::new("0.1.0"))?;
    author.sign(&file)?;
    let file = file.to_str().context("a path is text")?;
    let push = |to: &Registry, authority: &str| {
        let to = format!("oci://{}/packs/acme/deny-one", to.tls_host());
        believing(scene, authority, &["policy", "push", file, &to])
    };

    let good = Registry::with_tls(Certificate::Good)?;
    let other = Registry::with_tls(Certificate::Good)?;
    for (registry, authority, what) in [
        (&good, other.authority()?, "an authority that nobody knows"),
        (&Registry::with_tls(Certificate::OtherName)?, String::new(), "a certificate for another name"),
        (&Registry::with_tls(Certificate::Expired)?, String::new(), "a certificate of yesterday"),
    ] {
        let authority = if authority.is_empty() { registry.authority()? } else { authority };
        let told = push(registry, &authority)?.ended_with(REFUSED)?;
        ensure!(told.stderr.contains("certificate"), "{what}: {told:#?}");
    }
    // A registry without TLS is not contacted unless its name says that it is this machine.
    let told = push(&plain, &good.authority()?)?.ended_with(REFUSED)?;
    ensure!(told.stderr.contains("asking"), "{told:#?}");

    push(&good, &good.authority()?)?.ended_with(0)?;
    let team = Scene::new(user)?;
    let (key, place) = (author.public_key()?, format!("{}/packs", good.tls_host()));
    let trust = ["policy", "trust", "publisher", "acme", "--key", &key, "--registry", &place];
    team.portcullis(&trust)?.ended_with(0)?;
    team.portcullis(&["policy", "add", "acme:deny-one"])?.ended_with(REFUSED)?;
    ensure!(lock(&team)?.is_empty(), "it was taken from a stranger");
    believing(&team, &good.authority()?, &["policy", "add", "acme:deny-one"])?.ended_with(0)?;
    ensure!(lock(&team)?.contains("acme:deny-one"));
    Ok(())
}
