//! Compares every statement of Portcullis about the rules in force with the actual results of commands and tools: under
//! every shipped policy that needs no build, in every layout of settings, and after every import.

mod said;
mod tried;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use portcullis_it::{Interface, Scene, Serve, User};
use serde_json::{Value, json};

use crate::machine::{NO_LANDLOCK, NO_NAMESPACES};
use said::{Claim, Right, Standing, Who, claims};
use tried::tried;

as_each_user!(
    of_the_built_in_settings,
    of_the_readme,
    of_the_policy_guard,
    of_the_policy_git_guard,
    of_the_policy_secrets,
    of_the_policy_bosun,
    of_agents_whose_commands_write_nothing,
    of_an_entry_for_the_project,
    of_the_layered_layout,
    of_a_project_that_tightens,
    of_a_machine_without_landlock,
    of_a_machine_without_namespaces,
    of_what_is_imported,
    of_every_policy_in_both_older_layouts,
    of_the_home_directory_as_project,
    a_false_statement_is_found,
    files_of_other_sandboxes_are_told,
    a_list_that_is_missing_is_empty,
);

const FAILED: i32 = 1;
/// The lists that every entry of the first layout has.
const LISTS: &str = r#""network": { "allowedDomains": ["a.test", "*.b.test:443"], "deniedDomains": ["c.test"] },
    "filesystem": { "denyRead": ["/home", "~/.secret"], "allowRead": [".", "~/.pi", "~/notes"],
      "allowWrite": [".", "OUTSIDE/free"], "denyWrite": ["vendor", "~/notes/fixed"] }"#;

/// The sentences that one surface shows.
struct Surface {
    name: &'static str,
    sentences: Vec<String>,
}

fn scene(user: User) -> Result<Scene> {
    let scene = Scene::new(user)?;
    furnish(&scene)?;
    Ok(scene)
}

/// Makes the files that statements are about.
fn furnish(scene: &Scene) -> Result<()> {
    for name in [".ssh/id_ed25519", ".config/gh/hosts.yml", ".bash_history", ".aws/credentials"] {
        scene.write(&scene.home().join(name), "hunter2")?;
    }
    for name in [".secret/x", "notes/fixed/x", ".gnupg/x", ".pi/agent/settings.json"] {
        scene.write(&scene.home().join(name), "{}")?;
    }
    scene.write(&scene.outside().join("free/x"), "")
}

/// Compares all statements with what can be done under these policies, in a scene that has their components.
pub(crate) fn hold_with(scene: &Scene, policies: &str) -> Result<()> {
    furnish(scene)?;
    default(scene, &format!(r#"{{ {LISTS}, "policies": [{policies}] }}"#))?;
    holds(scene).map(drop)
}

fn default(scene: &Scene, text: &str) -> Result<()> {
    let text = text.replace("OUTSIDE", &scene.outside().display().to_string());
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &text)
}

/// Returns the lines after a title, up to the next one.
fn below(output: &str, title: &str) -> Result<Vec<String>> {
    let mut lines = output.lines().skip_while(|line| !line.starts_with(title));
    lines.next().with_context(|| format!("no `{title}` in {output}"))?;
    let section = lines.take_while(|line| line.starts_with("  "));
    Ok(section.map(|line| line.trim().to_owned()).collect())
}

/// Returns all sentences that are shown in the scene's project.
fn surfaces(scene: &Scene) -> Result<Vec<Surface>> {
    let mut surfaces = Vec::new();
    let mut add = |name, sentences: Vec<String>| -> Result<()> {
        // The orientation leaves out what does not fit.
        let least = if name == "orientation" { 3 } else { 4 };
        ensure!(sentences.len() >= least, "{name} says too little: {sentences:#?}");
        surfaces.push(Surface { name, sentences });
        Ok(())
    };
    add("config show", below(&scene.portcullis(&["config", "show"])?.ended_with(0)?.stdout, "in force")?)?;
    let report = scene.portcullis(&["config", "show", "--json"])?.ended_with(0)?.stdout;
    let report: Value = serde_json::from_str(&report)?;
    let said = report.pointer("/inForce/statements").and_then(Value::as_array).context("statements")?;
    let texts = said.iter().filter_map(|one| one.get("text")?.as_str()).map(str::to_owned).collect();
    add("config show --json", texts)?;
    add("doctor", below(&scene.portcullis(&["doctor"])?.stdout, "in force here")?)?;

    let mut host = Serve::greeted(scene, &[], Interface::Present)?;
    let status = host.succeed("status", &json!({}))?;
    let brief = status.get("brief").and_then(Value::as_str).context("a brief")?;
    let words = brief.split_whitespace().count();
    ensure!(words <= 150 && brief.ends_with('.'), "{words} words: {brief}");
    for said in
        ["may mean hidden", "To ask the user", "Each question interrupts them", "do not work around it"]
    {
        ensure!(brief.contains(said), "no `{said}` in {brief}");
    }
    // The home directory is private unless a rule of the policy opens it.
    ensure!(brief.contains("home directory (~)") || scene.home().parent().is_none(), "{brief}");
    add("orientation", orientation(brief)?)?;
    let screen = in_force(&mut host)?;
    let lines = screen.get("lines").and_then(Value::as_array).context("lines")?;
    let lines: Vec<&str> = lines.iter().filter_map(|line| line.get("text")?.as_str()).collect();
    let after = lines.iter().position(|line| line.starts_with("Policies: ")).context("the policies")?;
    is_said_of_the_session(scene, lines.get(..after).context("lines")?)?;
    add("/sandbox", lines.iter().skip(after + 1).map(|line| (*line).to_owned()).collect())?;
    Ok(surfaces)
}

/// Returns the screen of `/sandbox` with all that is in force.
fn in_force(host: &mut Serve) -> Result<Value> {
    let overview = host.succeed("menu", &json!({ "event": { "kind": "open" } }))?;
    let items = overview.get("items").and_then(Value::as_array).context("items")?;
    let place = items.iter().position(|item| item.get("label") == Some(&json!("What is in force")));
    host.succeed("menu", &json!({ "event": { "kind": "choose", "index": place.context("an item")? } }))
}

/// Compares what `/sandbox` says of the session itself, above the policies, with what other commands find.
fn is_said_of_the_session(scene: &Scene, lines: &[&str]) -> Result<()> {
    let doctor: Value = serde_json::from_str(&scene.portcullis(&["doctor", "--json"])?.stdout)?;
    let is_full = doctor.get("tier") == Some(&json!("full"));
    let agent = scene.home().join(".pi/agent");
    let default = std::fs::read_to_string(agent.join("sandbox/default.json")).ok();
    let scope = match default {
        Some(text) if text.contains("\"layered\"") => "extensions/sandbox.json",
        _ if agent.join("sandbox/projects.json").exists() => "projects.json[",
        Some(_) => "default.json",
        None => "built-in defaults",
    };
    match lines {
        [state, of] if of.strip_prefix("Settings: ").is_some_and(|of| of.starts_with(scope)) => {
            ensure!((*state == "The sandbox is on, every layer in force.") == is_full, "{state}: {doctor}");
            Ok(())
        }
        _ => bail!("above the policies stands {lines:#?}, and not {scope}"),
    }
}

/// Returns the sentences of the orientation, without those about the machine and about refusals.
fn orientation(brief: &str) -> Result<Vec<String>> {
    let own: Vec<&str> = brief.lines().take_while(|line| !line.starts_with("What is refused")).collect();
    // Beyond that stands what to do, and what policies say of themselves, as a quotation.
    let mut beyond = brief.lines().skip(own.len() + 1);
    ensure!(
        beyond
            .all(|line| line.starts_with("> ") || line.starts_with("Policy `") && line.ends_with("` says:")),
        "unknown after the rules: {brief}"
    );
    match own.as_slice() {
        ["# Sandbox", machine, rest @ ..]
            if machine.starts_with("Tools and commands run in a sandbox on") =>
        {
            Ok(rest.iter().map(|line| (*line).to_owned()).collect())
        }
        _ => bail!("what the model is told begins otherwise: {brief}"),
    }
}

fn claimed(scene: &Scene, surfaces: &[Surface]) -> Result<BTreeSet<Claim>> {
    let mut all = BTreeSet::new();
    for surface in surfaces {
        for sentence in &surface.sentences {
            all.extend(claims(scene, sentence).with_context(|| surface.name)?);
        }
    }
    Ok(all)
}

/// Compares all sentences that are shown in a scene with what can be done in it; returns their claims.
fn holds(scene: &Scene) -> Result<Vec<Claim>> {
    let surfaces = surfaces(scene)?;
    let claims: Vec<Claim> = claimed(scene, &surfaces)?.into_iter().collect();
    compare(scene, &claims)?;
    Ok(claims)
}

fn compare(scene: &Scene, claims: &[Claim]) -> Result<()> {
    let mistakes = tried(scene, claims)?.mistakes(claims);
    ensure!(mistakes.is_empty(), "of {} claims are not true: {mistakes:#?}", claims.len());
    Ok(())
}

/// Whether a sentence claims this of commands and a place in the home directory.
fn is_claimed(claims: &[Claim], scene: &Scene, name: &str, right: Right, standing: Standing) -> bool {
    let target = scene.home().join(name);
    claims.iter().any(|claim| {
        claim.who == Who::Commands
            && claim.right == right
            && claim.target == target
            && claim.standing == standing
    })
}

fn of_the_built_in_settings(user: User) -> Result<()> {
    let scene = scene(user)?;
    let claims = holds(&scene)?;
    ensure!(is_claimed(&claims, &scene, said::READ_PROBE, Right::Read, Standing::Closed), "{claims:#?}");
    ensure!(is_claimed(&claims, &scene, said::READ_PROBE, Right::Named, Standing::Asked), "{claims:#?}");
    Ok(())
}

/// The README's sentences on the defaults, and what they claim in the words of the other surfaces.
const README: [(&str, &[&str]); 3] = [
    (
        "The agent's tools and commands read and write in the directory where you start pi.",
        &["Commands and tools can read PROJECT.", "Commands and tools can write PROJECT."],
    ),
    (
        "pi's file tools also read programs and libraries, and ask before they read or write anything else.",
        &[
            "Tools can read the system's programs; everything else after a question.",
            "Tools can write PROJECT; everything else after a question.",
        ],
    ),
    (
        "Commands read the rest of the system, but not your home directory.\nThey ask before they write elsewhere or \
         reach a host, and before they read what they name in your home directory.",
        &[
            "Commands can read everything else; ~ after a question, if a command names them.",
            "Commands can write PROJECT; everything else after a question.",
            "Commands reach no host without a question; every other host on the internet after a question.",
        ],
    ),
];

fn of_the_readme(user: User) -> Result<()> {
    let scene = scene(user)?;
    let readme = include_str!("../../../README.md");
    let project = scene.project().display().to_string();
    let mut all = BTreeSet::new();
    for (sentence, meaning) in README {
        ensure!(readme.contains(sentence), "the README does not say: {sentence}");
        for statement in meaning {
            all.extend(claims(&scene, &statement.replace("PROJECT", &project))?);
        }
    }
    compare(&scene, &all.into_iter().collect::<Vec<_>>())
}

/// The rules of `@sysid/pi-sandbox`: every file that no rule names can be read, also in the home directory.
fn of_the_policy_guard(user: User) -> Result<()> {
    let scene = scene(user)?;
    default(&scene, r#"{ "policies": [{ "use": "guard" }] }"#)?;
    let claims = holds(&scene)?;
    ensure!(is_claimed(&claims, &scene, said::READ_PROBE, Right::Read, Standing::Free), "{claims:#?}");
    Ok(())
}

fn of_the_policy_git_guard(user: User) -> Result<()> {
    let scene = scene(user)?;
    default(
        &scene,
        &format!(r#"{{ {LISTS}, "policies": [{{ "use": "workspace" }}, {{ "use": "git-guard" }}] }}"#),
    )?;
    holds(&scene).map(drop)
}

fn of_the_policy_secrets(user: User) -> Result<()> {
    let scene = scene(user)?;
    default(
        &scene,
        &format!(r#"{{ {LISTS}, "policies": [{{ "use": "workspace" }}, {{ "use": "secrets" }}] }}"#),
    )?;
    holds(&scene).map(drop)
}

fn of_the_policy_bosun(user: User) -> Result<()> {
    let scene = scene(user)?;
    default(&scene, r#"{ "policies": [{ "use": "bosun" }] }"#)?;
    holds(&scene).map(drop)
}

fn of_agents_whose_commands_write_nothing(user: User) -> Result<()> {
    let scene = scene(user)?;
    default(&scene, r#"{ "policies": [{ "use": "bosun", "config": { "read_only_bash": ["*"] } }] }"#)?;
    holds(&scene).map(drop)
}

/// The layout of `@oddsjam/pi-sandbox`.
fn of_an_entry_for_the_project(user: User) -> Result<()> {
    let scene = scene(user)?;
    let text = format!("{{ \"{}\": {{ {LISTS} }} }}", scene.project().display());
    let text = text.replace("OUTSIDE", &scene.outside().display().to_string());
    scene.write(&scene.home().join(".pi/agent/sandbox/projects.json"), &text)?;
    let claims = holds(&scene)?;
    ensure!(
        is_claimed(&claims, &scene, "notes/statement-read.txt", Right::Read, Standing::Free),
        "{claims:#?}"
    );
    Ok(())
}

/// The layout of `@sysid/pi-sandbox`.
fn of_the_layered_layout(user: User) -> Result<()> {
    let scene = scene(user)?;
    default(&scene, r#"{ "layout": "layered" }"#)?;
    let users = r#"{ "filesystem": { "denyRead": ["~/.ssh", "~/.secret"] }, "network": { "deniedDomains": ["c.test"] } }"#;
    scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), users)?;
    scene.write(
        &scene.project().join(".pi/sandbox.json"),
        r#"{ "filesystem": { "denyWrite": ["*.lock"] } }"#,
    )?;
    let claims = holds(&scene)?;
    ensure!(is_claimed(&claims, &scene, said::READ_PROBE, Right::Read, Standing::Free), "{claims:#?}");
    Ok(())
}

fn of_a_project_that_tightens(user: User) -> Result<()> {
    let scene = scene(user)?;
    default(&scene, &format!("{{ {LISTS} }}"))?;
    let tightens = r#"{ "filesystem": { "denyRead": ["inner", "/etc/group"], "denyWrite": ["**/*.lock"] },
        "network": { "strictAllowlist": true } }"#;
    scene.write(&scene.project().join(".pi/portcullis.json"), tightens)?;
    holds(&scene).map(drop)
}

fn of_the_home_directory_as_project(user: User) -> Result<()> {
    let scene = scene(user)?;
    let home = scene.home().display().to_string();
    let shown = scene.portcullis(&["config", "show", "--project", &home])?.ended_with(0)?.stdout;
    let said = below(&shown, "in force")?.join("\n");
    ensure!(said.contains("Commands can read and write your home directory (~)"), "{said}");
    let scene = self::scene(user)?.at_home();
    let claims = holds(&scene)?;
    ensure!(is_claimed(&claims, &scene, said::WRITE_PROBE, Right::Write, Standing::Free), "{claims:#?}");
    Ok(())
}

fn of_a_machine_without_landlock(user: User) -> Result<()> {
    of_a_weaker_machine(user, "namespaces", ("python3", NO_LANDLOCK), &[LISTS])
}

fn of_a_machine_without_namespaces(user: User) -> Result<()> {
    let guard = r#""policies": [{ "use": "guard" }]"#;
    of_a_weaker_machine(user, "landlock", ("unshare", NO_NAMESPACES), &[LISTS, guard])
}

/// Settings where the sandbox has fewer layers.
fn of_a_weaker_machine(
    user: User,
    tier: &str,
    (program, words): (&'static str, &'static [&'static str]),
    settings: &[&'static str],
) -> Result<()> {
    for more in settings {
        let scene = scene(user)?.through(program, words);
        default(&scene, &format!(r#"{{ {more}, "requiredTier": "{tier}" }}"#))?;
        holds(&scene).with_context(|| *more)?;
    }
    Ok(())
}

/// Every shipped policy that needs no build, in the layout of `@oddsjam/pi-sandbox` and in that of `@sysid/pi-sandbox`.
fn of_every_policy_in_both_older_layouts(user: User) -> Result<()> {
    for policies in [
        r#"[{ "use": "guard" }]"#,
        r#"[{ "use": "bosun" }]"#,
        r#"[{ "use": "workspace" }, { "use": "git-guard" }]"#,
        r#"[{ "use": "workspace" }, { "use": "secrets" }]"#,
    ] {
        let scene = scene(user)?;
        let text = format!(r#"{{ "{}": {{ {LISTS}, "policies": {policies} }} }}"#, scene.project().display());
        let text = text.replace("OUTSIDE", &scene.outside().display().to_string());
        scene.write(&scene.home().join(".pi/agent/sandbox/projects.json"), &text)?;
        holds(&scene).with_context(|| format!("projects.json, {policies}"))?;

        let scene = self::scene(user)?;
        default(&scene, r#"{ "layout": "layered" }"#)?;
        let users = format!(
            r#"{{ "filesystem": {{ "denyRead": ["~/.secret"], "denyWrite": ["*.lock"] }}, "policies": {policies} }}"#
        );
        scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), &users)?;
        scene.write(
            &scene.project().join(".pi/sandbox.json"),
            r#"{ "filesystem": { "denyWrite": ["*.pem"] } }"#,
        )?;
        holds(&scene).with_context(|| format!("layered, {policies}"))?;
    }
    Ok(())
}

/// The output of an import is true of the settings that it creates, and is shown before they are created.
fn of_what_is_imported(user: User) -> Result<()> {
    let given = r#"{ "network": { "allowedDomains": ["a.test"], "deniedDomains": ["c.test"] },
        "filesystem": { "denyRead": ["~/.secret"], "allowWrite": ["."], "denyWrite": ["*.lock"] } }"#;
    let toml = "[bwrap]\ndeny_read = ['.ssh', '*.pem']\nallow_write = ['./made']\ndeny_write = ['*.lock']\n";
    for (source, file, text) in [
        ("sysid", ".pi/agent/extensions/sandbox.json", given),
        ("pi-sandbox", ".pi/agent/sandbox.json", given),
        ("srt", ".srt-settings.json", given),
        ("oddsjam", "given.json", given),
        ("bosun", "given.toml", toml),
    ] {
        let scene = scene(user)?;
        let file = scene.home().join(file);
        scene.write(&file, text)?;
        let file = file.display().to_string();
        let mut words = vec!["config", "import", "--from", source];
        if ["oddsjam", "bosun"].contains(&source) {
            words.push(&file);
        }
        let dry = scene.portcullis(&[&words[..], &["--dry-run"]].concat())?.ended_with(0)?;
        let announced = below(&dry.stdout, "would be in force in ").with_context(|| source)?;
        let done = scene.portcullis(&words)?.ended_with(0)?;
        let sentences = below(&done.stdout, "in force in ").with_context(|| source)?;
        ensure!(announced == sentences, "{source}: {announced:#?}, and then {sentences:#?}");
        let claims: Vec<Claim> =
            claimed(&scene, &[Surface { name: "config import", sentences }])?.into_iter().collect();
        compare(&scene, &claims).with_context(|| source)?;
        let sees_home = is_claimed(&claims, &scene, said::READ_PROBE, Right::Read, Standing::Free);
        ensure!(sees_home == (source == "sysid"), "{source}: {claims:#?}");
    }
    Ok(())
}

/// The control: claims that hold under other rules, claims of earlier versions about these rules, and the opposite of
/// every claim are found to be false.
fn a_false_statement_is_found(user: User) -> Result<()> {
    let scene = scene(user)?;
    let usual: Vec<Claim> = claimed(&scene, &surfaces(&scene)?)?.into_iter().collect();
    default(&scene, r#"{ "policies": [{ "use": "guard" }] }"#)?;
    let old = claims(&scene, "Commands do not see your home directory (~).")?;
    let own: Vec<Claim> = claimed(&scene, &surfaces(&scene)?)?.into_iter().collect();
    let all = [usual.clone(), old.clone(), own.clone()].concat();
    let tried = tried(&scene, &all)?;
    ensure!(!tried.mistakes(&old).is_empty(), "the home directory is closed");
    ensure!(!tried.mistakes(&usual).is_empty(), "what holds without the policy holds with it");
    ensure!(tried.mistakes(&own).is_empty(), "{:#?}", tried.mistakes(&own));
    for claim in own {
        for standing in [Standing::Free, Standing::Asked, Standing::Closed] {
            let turned = Claim { standing, ..claim.clone() };
            let is_found = !tried.mistakes(std::slice::from_ref(&turned)).is_empty();
            ensure!(is_found == (standing != claim.standing), "{turned:?}");
        }
    }
    Ok(())
}

/// Settings files of `@sysid/pi-sandbox`, and of the sandbox before it, are reported until they are imported: in pi when
/// the session begins, and wherever settings are shown.
fn files_of_other_sandboxes_are_told(user: User) -> Result<()> {
    let given = r#"{ "filesystem": { "denyWrite": ["*.lock"] } }"#;
    for (source, file) in [("sysid", "extensions/sandbox.json"), ("pi-sandbox", "sandbox.json")] {
        let scene = scene(user)?;
        let silent = scene.portcullis(&["config", "show"])?.ended_with(0)?.stdout;
        ensure!(!silent.contains("have no effect here"), "{silent}");
        let project = scene.project().join(".pi/sandbox.json");
        scene.write(&scene.home().join(".pi/agent").join(file), given)?;
        scene.write(&project, given)?;
        let remedy = format!("config import --from {source}");
        let told = |text: &str| {
            text.contains(file) && text.contains("have no effect here") && text.contains(&remedy)
        };
        for words in [&["config", "show"][..], &["doctor"]] {
            let shown = scene.portcullis(words)?.stdout;
            ensure!(told(&shown) && shown.contains(".pi/portcullis.json"), "{words:?}: {shown}");
        }
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        for owner in [file, "project/.pi/sandbox.json"] {
            let is_it = |message: &Value| {
                message.pointer("/params/kind") == Some(&json!("notice"))
                    && message.to_string().contains(owner)
            };
            host.wait(&format!("notice of {owner}"), is_it)?;
        }
        let screen = host.succeed("menu", &json!({ "event": { "kind": "open" } }))?.to_string();
        ensure!(told(&screen), "{screen}");
        host.close()?;
        scene.portcullis(&["config", "import", "--from", source])?.ended_with(0)?;
        let shown = scene.portcullis(&["config", "show"])?.ended_with(0)?.stdout;
        ensure!(!shown.contains("have no effect here"), "taken over: {shown}");
        scene.portcullis(&["check", "write", "x.lock"])?.ended_with(20)?;
    }
    // Neither file is reported in the layout that reads it.
    let scene = scene(user)?;
    scene.write(&scene.home().join(".pi/agent/extensions/sandbox.json"), given)?;
    scene.write(&scene.project().join(".pi/sandbox.json"), given)?;
    default(&scene, r#"{ "layout": "layered" }"#)?;
    let shown = scene.portcullis(&["config", "show"])?.ended_with(0)?.stdout;
    ensure!(!shown.contains("have no effect here"), "{shown}");
    Ok(())
}

/// A file of sandbox-runtime works unchanged: a missing list is empty, a key for other systems is reported to have no
/// effect, and an unknown key is reported with its place.
fn a_list_that_is_missing_is_empty(user: User) -> Result<()> {
    let scene = scene(user)?;
    for text in [
        "{}",
        r#"{ "network": { "allowedDomains": ["a.test"] } }"#,
        r#"{ "filesystem": { "allowWrite": ["."] } }"#,
        r#"{ "network": {}, "filesystem": { "denyRead": ["~/.ssh"], "allowWrite": ["."] }, "allowPty": true,
            "enableWeakerNestedSandbox": true, "ripgrep": { "command": "rg" } }"#,
    ] {
        default(&scene, text)?;
        scene.portcullis(&["config", "validate"])?.ended_with(0)?;
        holds(&scene).with_context(|| text)?;
    }
    default(&scene, r#"{ "filesystem": { "denyRaed": ["~/.secret"] } }"#)?;
    let told = scene.portcullis(&["config", "show"])?.ended_with(FAILED)?;
    ensure!(told.stderr.contains("line 1") && told.stderr.contains("did you mean `denyRead`?"), "{told:?}");
    Ok(())
}
