//! The difference that a declaration makes to commands, and to policies.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Scene, User, World};
use serde_json::json;

use super::{SECRET, SOURCE, before, folders, marked, run_with, section, settings};
use crate::network::PROGRAM;

as_each_user!(
    a_policy_decides_by_the_name_of_the_credential,
    what_a_credential_comes_from_is_not_inside,
    an_undeclared_session_is_as_before,
    a_read_only_preset_lets_requests_through_that_read,
);

fn a_policy_decides_by_the_name_of_the_credential(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let mut settings = settings();
    settings["policies"] = json!([{ "use": "workspace" }, { "use": portcullis_it::guest("stages", user)? }]);
    let scripts = [
        "curl -sS -H \"X-Key: $FORGE_KEY\" $B/guarded",
        "curl -sS -H \"Authorization: Bearer $FORGE_TOKEN\" $B/guarded",
        "curl -sS -H \"X-Key: $FORGE_KEY\" $B/other",
    ];
    let finished = run_with(&world, &scene, &settings, &(before(&folders()?) + &marked(&scripts)))?;
    let outcome = |number| section(&finished.stdout, number).with_context(|| format!("{finished:#?}"));
    ensure!(outcome(0)?.contains("the credential forge-key is not for this path"), "{finished:#?}");
    ensure!(outcome(1)?.contains("REACHED") && outcome(2)?.contains("REACHED"), "{finished:#?}");
    let stored = fs::read_to_string(scene.at("world").join("requests"))?;
    ensure!(stored.matches("/guarded").count() == 1, "{stored}");
    Ok(())
}

/// The variable and the file that credentials come from are not inside, whatever other settings open.
fn what_a_credential_comes_from_is_not_inside(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let token = scene.home().join("plain/token");
    scene.write(&token, SECRET)?;
    scene.write(&scene.home().join("plain/other"), "OTHER FILE")?;
    let directory = scene.home().join("plain").display().to_string();
    let script = format!(
        "env | grep -c -e {SOURCE} -e '{SECRET}'; cat {directory}/token; cat {directory}/other; \
         curl -sS -H \"X-Key: $FILE_KEY\" https://allowed.test:9443/a"
    );
    let mut settings = settings();
    settings["environment"] = json!({ "keep": [SOURCE] });
    settings["filesystem"]["allowRead"] = json!([".", directory]);
    let file = json!({
        "name": "from-file", "source": { "file": token }, "host": "allowed.test:9443", "form": "header",
        "header": "x-key", "for": ["GET /**"], "variables": ["FILE_KEY"],
    });
    settings["credentials"]["brokered"][2] = file;
    let finished = run_with(&world, &scene, &settings, &script)?;
    ensure!(finished.stdout.starts_with("0\n"), "{finished:#?}");
    ensure!(finished.stdout.contains("OTHER FILE") && finished.stdout.contains("REACHED"), "{finished:#?}");
    ensure!(!finished.stdout.contains(SECRET) && !finished.stderr.contains(SECRET), "{finished:#?}");
    // Without the declaration, the settings open both: that is what the declaration has to outdo.
    settings["credentials"] = json!({});
    let finished = run_with(&world, &scene, &settings, &script)?;
    ensure!(
        !finished.stdout.starts_with("0\n") && finished.stdout.matches(SECRET).count() == 1,
        "{finished:#?}"
    );
    Ok(())
}

/// Without a declaration, TLS stays end to end, and no variable, file or certificate is added.
fn an_undeclared_session_is_as_before(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let script = "env | grep -c -e certificates- -e CURL_CA_BUNDLE -e GIT_SSL -e pcx_ -e GIT_CONFIG_COUNT; \
                  find /tmp -name 'certificates-*' | wc -l; \
                  echo | openssl s_client -connect allowed.test:9443 -servername allowed.test 2>/dev/null \
                  | openssl x509 -noout -issuer; \
                  echo | openssl s_client -connect allowed.test:9445 -servername allowed.test 2>/dev/null \
                  | openssl x509 -noout -issuer";
    let mut settings = settings();
    let declared = run_with(&world, &scene, &settings, script)?;
    ensure!(
        declared.stdout.matches("Portcullis, for this session").count() == 2
            && !declared.stdout.starts_with("0\n"),
        "the control: {declared:#?}"
    );
    settings["credentials"] = json!({});
    settings["network"]["requests"] = json!([]);
    let finished = run_with(&world, &scene, &settings, script)?;
    ensure!(finished.stdout.starts_with("0\n0\n"), "{finished:#?}");
    ensure!(
        finished.stdout.matches("CN").count() == 2 && !finished.stdout.contains("Portcullis"),
        "{finished:#?}"
    );
    // A declared host next to one that is not: only its own connections are opened.
    settings["network"]["requests"] = json!([{ "host": "allowed.test:9445", "allow": ["GET /**"] }]);
    settings["network"]["allowedDomains"] = json!(["allowed.test", "*.allowed.test"]);
    let script = "for name in evil.test allowed.test; do \
                  echo | openssl s_client -connect allowed.test:9445 -servername $name 2>/dev/null \
                  | openssl x509 -noout -subject; done; \
                  echo | openssl s_client -connect sub.allowed.test:443 -servername sub.allowed.test 2>/dev/null \
                  | openssl x509 -noout -issuer";
    let finished = run_with(&world, &scene, &settings, script)?;
    ensure!(!finished.stdout.contains("evil.test"), "a certificate for another host: {finished:#?}");
    ensure!(finished.stdout.matches("subject").count() == 1, "{finished:#?}");
    ensure!(!finished.stdout.contains("Portcullis"), "{finished:#?}");
    Ok(())
}

fn a_read_only_preset_lets_requests_through_that_read(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let world = World::new(&scene, PROGRAM)?;
    let preset = scene.home().join(".pi/agent/sandbox/presets/forge.preset");
    scene.write(
        &preset,
        "title a forge\nreads GET,HEAD:/**  packages are fetched\nhost allowed.test:9443  packages\n",
    )?;
    let script = before(&folders()?)
        + &marked(&[
            "curl -sS $B/open/hello",
            "curl -sS -d data $B/open/hello 2>&1",
            "echo | openssl s_client -connect allowed.test:9443 -servername allowed.test 2>/dev/null | openssl x509 -noout -issuer",
        ]);
    let mut settings = settings();
    settings["credentials"] = json!({});
    settings["network"]["requests"] = json!([]);
    let control = run_with(&world, &scene, &settings, &script)?;
    for number in [0, 1] {
        ensure!(section(&control.stdout, number)?.contains("REACHED"), "the control: {control:#?}");
    }
    ensure!(!section(&control.stdout, 2)?.contains("Portcullis"), "the control: {control:#?}");
    settings["readOnlyPresets"] = json!(["forge"]);
    let finished = run_with(&world, &scene, &settings, &script)?;
    ensure!(section(&finished.stdout, 0)?.contains("REACHED"), "{finished:#?}");
    ensure!(
        section(&finished.stdout, 2)?.contains("Portcullis"),
        "the gate reads the requests: {finished:#?}"
    );
    ensure!(!section(&finished.stdout, 1)?.contains("REACHED"), "{finished:#?}");
    ensure!(format!("{}{}", finished.stdout, finished.stderr).contains("host.request-rule"), "{finished:#?}");
    Ok(())
}
