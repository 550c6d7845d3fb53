//! Variables that look like credentials are withheld from commands, harmless ones are passed on, and a message
//! names those that were withheld.

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    credentials_are_not_given_to_commands,
    what_is_kept_back_is_told_and_can_be_let_through,
    a_session_of_pi_gives_the_same,
);

/// The variables that commands do not get, at least one for each way of recognising a credential, with the reason that
/// is reported.
const KEPT_BACK: &[(&str, &str, &str)] = &[
    // Recognised by a part of the name.
    ("SSHPASS", "hunter2", NAME),
    ("LDAP_BINDPW", "hunter2", NAME),
    ("FOO_PW", "hunter2", NAME),
    ("DB_CRED", "hunter2", NAME),
    ("mytoken", "hunter2", NAME),
    ("AWS_PROFILE", "hunter2", NAME),
    // Recognised by the user information of a URL.
    ("CACHE_URL", "redis://me:hunter2@cache.test:6379/0", VALUE),
    ("PIP_INDEX_URL", "https://0123456789abcdef01234567@pypi.test/hunter2", VALUE),
    // Recognised by a key in a query, in JSON or in options.
    ("JDBC_URL", "jdbc:postgresql://db/x?user=me&password=hunter2", VALUE),
    ("DOWNLOADS", "https://files.test/x?X-Amz-Signature=hunter2", VALUE),
    ("SETTINGS_OF_APP", "{\"user\": \"me\", \"password\": \"hunter2\"}", VALUE),
    ("NESTED", "{\"db\":{\"client_secret\":\"hunter2\"}}", VALUE),
    ("EXTRA_ARGS", "--user me --password=hunter2", VALUE),
    // Recognised by the prefix of a known token format, and by looking random.
    ("PLAIN", "ghp_hunter2hunter2hunter2", VALUE),
    ("DRAWN", "wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY0", VALUE),
    // Variables that give access to sockets, agents or code elsewhere.
    ("SSH_AUTH_SOCK", "/run/hunter2", "it leads to a socket or an agent outside the sandbox"),
    ("LD_PRELOAD", "/hunter2.so", "programs load code or settings through it"),
];
const NAME: &str = "its name is one of a credential";
const VALUE: &str = "its value looks like a credential";

/// Variables that builds need, some of which resemble the ones above.
const GIVEN: &[(&str, &str)] = &[
    ("CI", "true"),
    ("KEYBOARD", "us"),
    ("PASSENGERS", "4"),
    ("MONKEY", "banana"),
    ("AUTHOR", "me"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("CARGO_HOME", "/home/me/.cargo"),
    ("HOMEPAGE", "https://example.test/path?page=2"),
    ("GITHUB_SHA", "93470d9b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f"),
    ("APP_SETTINGS", "{\"user\": \"me\", \"retries\": 3}"),
    ("CFLAGS", "-O2 -g -DNAME=value"),
    ("RELEASE", "ReleaseCandidate10"),
];

fn with_variables(scene: &Scene, words: &[&str]) -> Result<Finished> {
    let mut command = scene.portcullis_command(words)?;
    command.envs(KEPT_BACK.iter().map(|(name, value, _)| (name, value))).envs(GIVEN.iter().copied());
    // The dynamic loader prints an error for a library that does not exist.
    command.env_remove("LD_PRELOAD");
    Finished::run(&mut command)
}

fn settings(scene: &Scene, environment: &Value) -> Result<()> {
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["/home"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": [] },
        "environment": environment,
    });
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}

/// Prints everything that a command can read of its environment and of those of the processes that it sees.
const LOOKS: &str =
    "env; tr '\\0' '\\n' < /proc/self/environ; cat /proc/*/environ 2> /dev/null | tr '\\0' '\\n'; true";

fn credentials_are_not_given_to_commands(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut control = scene.user().command("/bin/sh".as_ref());
    scene.enter(&mut control);
    control.args(["-c", LOOKS]).envs(KEPT_BACK.iter().map(|(name, value, _)| (name, value)));
    let control = Finished::run(control.env_remove("LD_PRELOAD"))?;
    for (name, value, _) in KEPT_BACK.iter().filter(|(name, ..)| *name != "LD_PRELOAD") {
        ensure!(control.stdout.contains(&format!("{name}={value}")), "control: {name}");
    }
    let inside = with_variables(&scene, &["run", "--", "sh", "-c", LOOKS])?.ended_with(0)?;
    for (name, ..) in KEPT_BACK {
        ensure!(!inside.stdout.contains(&format!("{name}=")), "{name} is given: {inside:#?}");
    }
    ensure!(!inside.stdout.contains("hunter2") && !inside.stdout.contains("wJalr"), "{inside:#?}");
    for (name, value) in GIVEN {
        ensure!(inside.stdout.contains(&format!("{name}={value}\n")), "{name} is not given: {inside:#?}");
    }
    Ok(())
}

fn what_is_kept_back_is_told_and_can_be_let_through(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let shown = with_variables(&scene, &["config", "show"])?.ended_with(0)?;
    ensure!(shown.stdout.contains("variables of this environment that commands do not get"), "{shown:#?}");
    let how = "to let one through, add its name to `environment.keep` in the settings";
    ensure!(shown.stdout.contains(how), "{shown:#?}");
    let listed = with_variables(&scene, &["config", "show", "--json"])?.ended_with(0)?;
    ensure!(!format!("{shown:?}{listed:?}").contains("hunter2"), "names are told, and no values: {shown:#?}");
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let listed = listed.get("keptBackVariables").and_then(Value::as_array).context("a list")?;
    for (name, _, reason) in KEPT_BACK.iter().filter(|(name, ..)| *name != "LD_PRELOAD") {
        let line = |line: &str| line.split_whitespace().next() == Some(name) && line.ends_with(reason);
        ensure!(shown.stdout.lines().any(line), "{name} is not told: {}", shown.stdout);
        ensure!(listed.contains(&json!({ "name": name, "reason": reason })), "{name}: {listed:?}");
    }
    for (name, _) in GIVEN {
        let line = |line: &str| line.split_whitespace().next() == Some(name);
        ensure!(!shown.stdout.lines().any(line), "{name} is given, and told all the same");
    }

    // Following the advice of the message: the variable named there is passed on; the others stay withheld.
    let print = "echo pw=${FOO_PW-none} url=${CACHE_URL-none} pass=${SSHPASS-none} ci=${CI-none}";
    let before = with_variables(&scene, &["run", "--", "sh", "-c", print])?.ended_with(0)?;
    ensure!(before.stdout == "pw=none url=none pass=none ci=true\n", "{before:#?}");
    settings(&scene, &json!({ "keep": ["FOO_PW", "CACHE_*"], "drop": ["CI"] }))?;
    let after = with_variables(&scene, &["run", "--", "sh", "-c", print])?.ended_with(0)?;
    let url = "redis://me:hunter2@cache.test:6379/0";
    ensure!(after.stdout == format!("pw=hunter2 url={url} pass=none ci=none\n"), "{after:#?}");
    let shown = with_variables(&scene, &["config", "show", "--json"])?.ended_with(0)?;
    let shown: Value = serde_json::from_str(&shown.stdout)?;
    let listed = shown.get("keptBackVariables").context("a list")?.to_string();
    ensure!(
        !listed.contains("FOO_PW") && !listed.contains("CACHE_URL") && listed.contains("SSHPASS"),
        "{listed}"
    );
    ensure!(
        shown.get("keptBackVariables").is_some_and(|list| {
            list.as_array()
                .is_some_and(|list| list.contains(&json!({ "name": "CI", "reason": "a rule drops it" })))
        }),
        "{listed}"
    );

    // Project settings cannot pass on a variable.
    settings(&scene, &json!({}))?;
    let project = json!({ "environment": { "keep": ["FOO_PW"] } });
    scene.write(&scene.project().join(".pi/portcullis.json"), &project.to_string())?;
    let refused = with_variables(&scene, &["run", "--", "sh", "-c", print])?;
    ensure!(!refused.stdout.contains("hunter2"), "{refused:#?}");
    Ok(())
}

fn a_session_of_pi_gives_the_same(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    let variables: serde_json::Map<String, Value> = KEPT_BACK
        .iter()
        .map(|(name, value, _)| (*name, *value))
        .chain(GIVEN.iter().copied())
        .chain([("PATH", "/usr/bin:/bin")])
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let id = host.begin(LOOKS, &Value::Object(variables.clone()))?;
    let (_, output) = host.finish(id)?;
    ensure!(!output.contains("hunter2") && !output.contains("wJalr"), "{output}");
    for (name, value) in GIVEN {
        ensure!(output.contains(&format!("{name}={value}\n")), "{name} is not given: {output}");
    }
    settings(&scene, &json!({ "keep": ["FOO_PW"] }))?;
    let id = host.begin("echo ${FOO_PW-none} ${SSHPASS-none}", &Value::Object(variables))?;
    let (_, output) = host.finish(id)?;
    ensure!(output == "hunter2 none\n", "an edit counts in the running session: {output}");
    host.close()?;
    Ok(())
}
