//! Servers that repeat a credential: in forms that programs use, and in an answer that began before it was read.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};
use serde_json::json;

use super::{before, folders, marked, run, run_with, section, settings};
use crate::network::PROGRAM;

as_each_user!(
    usual_forms_of_a_credential_are_masked,
    a_credential_is_masked_in_an_answer_that_has_begun,
    the_masking_does_not_say_which_guess_is_right,
);

/// Forms of an answer, and Perl that reads the credential out of it.
const FORMS: &[(&str, &str)] = &[
    ("plain", "print"),
    ("base64 in lines", "use MIME::Base64; print decode_base64($_)"),
    ("hexadecimal with spaces", "s/\\s//g; print pack q(H*), $_"),
    ("hexadecimal with colons", "s/://g; print pack q(H*), $_"),
    ("numbers of HTML", "s/&#x0*([0-9a-f]+);/chr hex $1/ge; print"),
    ("JSON in JSON", "s/\\\\\\\\u00(..)/chr hex $1/ge; print"),
    ("UTF-16", "s/\\0//g; print"),
];

fn usual_forms_of_a_credential_are_masked(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = |(form, perl): &(&str, &str)| {
        let form = form.replace(' ', "-");
        format!(
            "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/form/{form} | tr '*' A \
             | perl -0777 -ne '{perl}' | grep -ac \"$PART1$PART2\"; \
             curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/wants"
        )
    };
    let scripts: Vec<String> = FORMS.iter().map(script).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let finished = run(&world, &scene, &(before(&folders()?) + &marked(&scripts)))?;
    let mut read = Vec::new();
    for (number, (form, _)) in FORMS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        ensure!(output.contains("REACHED"), "control, {form}: {output}");
        if !output.starts_with("0\n") {
            read.push(*form);
        }
    }
    ensure!(read.is_empty(), "a command reads the credential from {read:?}");
    Ok(())
}

/// The server refuses the first credential while an answer runs, and repeats the next one in that answer.
fn a_credential_is_masked_in_an_answer_that_has_begun(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let source = scene.at("token");
    scene.write(&source, "old-Credential-AAAAAAAAAAAA")?;
    let mut settings = settings();
    settings["credentials"]["brokered"] = json!([{
        "name": "forge", "source": { "command": ["/bin/cat", source] }, "host": "allowed.test:9443",
        "form": "bearer", "for": ["* /**"], "variables": ["FORGE_TOKEN"],
    }]);
    let script = "H=\"Authorization: Bearer $FORGE_TOKEN\"; B=https://allowed.test:9443\n\
                  curl -sSN -H \"$H\" $B/stream > stream & curl -sSN -H \"$H\" $B/stream > /dev/null &\n\
                  sleep 1; curl -sS -H \"$H\" $B/tell; touch first; sleep 12; \
                  curl -sS -H \"$H\" $B/tell; curl -sS -H \"$H\" $B/tell\n\
                  curl -sSN -m 3 -H \"$H\" $B/stream; echo; echo '<begun>'; wait; cat stream";
    let finished = std::thread::scope(|scope| {
        let running = scope.spawn(|| run_with(&world, &scene, &settings, script));
        let first = scene.project().join("first");
        let deadline = portcullis_it::Deadline::start();
        deadline.until("the first request", || Ok(first.exists().then_some(())))?;
        fs::write(&source, "new-Credential-BBBBBBBBBBBB")?;
        running.join().map_err(|_| anyhow::anyhow!("the run panicked"))?
    })?;
    let (later, begun) = finished.stdout.split_once("<begun>").context("the streams")?;
    ensure!(later.contains("Bearer ****") && !later.contains("BBBB"), "control: {finished:#?}");
    ensure!(begun.contains("Bearer ****"), "control: {finished:#?}");
    ensure!(!begun.contains("BBBB"), "{finished:#?}");
    Ok(())
}

/// The command knows more than half of the credential, and has the server repeat all that could be its next character.
fn the_masking_does_not_say_which_guess_is_right(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let shapes = |known: &str, encode: &str| {
        format!(
            "for next in {{a..z}} {{0..9}}; do echo $(printf %s \"{known}$next\" | {encode}); done \
             | curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" --data-binary @- $B/mine/repeat \
             | sed 's/[^*]/-/g' | sort -u"
        )
    };
    let in_hex = r"od -An -tx1 | tr -d ' \n'";
    let right = "$PART1${PART2:0:7}";
    let scripts = [shapes(right, "cat"), shapes(right, in_hex), shapes("x${PART1:1}${PART2:0:7}", "cat")];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let finished = run(&world, &scene, &(before(&folders()?) + &marked(&scripts)))?;
    // The last one is the control: that is what the server repeats.
    for (number, wanted) in ["*", "*", "-"].iter().enumerate() {
        let shape = section(&finished.stdout, number)?.trim();
        ensure!(shape.len() >= 19 && shape == wanted.repeat(shape.len()), "{number}: {finished:#?}");
    }
    Ok(())
}
