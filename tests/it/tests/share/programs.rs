//! Every verb that changes something has a JSON output of one object.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Registry, Scene, User};
use serde_json::Value;

use super::author::{Author, Build};
use super::{REFUSED, machine};

as_each_user!(each_verb_is_an_object);

/// Runs a verb with `--json` and returns the one object that it prints.
fn object(scene: &Scene, arguments: &[&str], status: i32) -> Result<Value> {
    let arguments = [&["policy"], arguments, &["--json"]].concat();
    let told = scene.portcullis(&arguments)?.ended_with(status)?;
    serde_json::from_str(&told.stdout).with_context(|| format!("{arguments:?}: {told:#?}"))
}

fn each_verb_is_an_object(user: User) -> Result<()> {
    let registry = Registry::start()?;
    let author = Author::new(user, &registry)?;
    let file = author.build(&Build::new("0.1.0"))?;
    let file = file.to_str().context("text")?;
    let key = author.scene().home().join("id");
    let signed = object(author.scene(), &["sign", file, "--key", key.to_str().context("text")?], 0)?;
    ensure!(signed.pointer("/signatures/0") == Some(&format!("{file}.sig").into()), "{signed}");

    let scene = machine(user, &author, &registry)?;
    let path = |name: &str| scene.outside().join(name).display().to_string();
    let digest = format!("sha256:{}", "0".repeat(64));
    for (arguments, place, expected) in [
        (vec!["new", "mine", "--lang", "rust"], "/id", "local:mine"),
        (
            vec!["trust", "publisher", "other", "--key", &author.public_key()?],
            "/added/publisher/0/name",
            "other",
        ),
        (
            vec![
                "trust",
                "key",
                "other",
                "--key",
                "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
            ],
            "/added/key/0/publisher",
            "other",
        ),
        (vec!["trust", "revoke", &digest, "--reason", "a hole"], "/added/revoked/0/reason", "a hole"),
        (vec!["trust", "file", file], "/added/trusted/0/note", file),
        (vec!["add", file], "/taken/0/id", "acme:deny-one"),
        (vec!["vendor", &path("vendored")], "/policies/0/id", "acme:deny-one"),
        (vec!["save", &path("packs.tar")], "/policies/0/id", "acme:deny-one"),
        (vec!["remove", "acme:deny-one"], "/removed/0", "acme:deny-one"),
        (vec!["load", &path("packs.tar")], "/taken/0/id", "acme:deny-one"),
    ] {
        let told = object(&scene, &arguments, 0)?;
        ensure!(told.pointer(place) == Some(&expected.into()), "{arguments:?}: {told}");
    }
    // A refusal has a machine-readable code, and so has the answer of `verify` for a pack that `add` would refuse.
    let old = author.build(&Build::new("0.0.9"))?;
    author.sign(&old)?;
    let old = old.to_str().context("text")?;
    let refused = object(&scene, &["add", old], REFUSED)?;
    ensure!(refused.pointer("/error/code") == Some(&"older".into()), "{refused}");
    ensure!(
        refused.pointer("/error/message").is_some_and(|told| told.to_string().contains("`acme:deny-one`"))
    );
    ensure!(object(&scene, &["verify", old], REFUSED)?.get("code") == Some(&"older".into()));
    Ok(())
}
