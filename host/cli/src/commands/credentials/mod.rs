//! `portcullis credentials`: credentials that commands use without having them.

mod declared;
mod edit;
mod suggest;

pub(super) use declared::names;

use portcullis_bootstrap::credential_test::{self, Tested};
use portcullis_bootstrap::credentials::{CredentialSources, words};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::untrusted_paths::UntrustedPaths;
use portcullis_settings_format::{
    BrokeredCredential, CredentialForm, SigningCredential, SigningForm, SshCredential,
};
use serde_json::{Value, json};

use declared::chosen;
use portcullis_command_line::args::config::SettingsChoice;
use portcullis_command_line::args::credentials::Credentials;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};

/// The use of a key to sign with.
const SIGNED: &str = "commits and tags";

/// Runs the subcommand.
pub(crate) fn run(credentials: &Credentials) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    match credentials {
        Credentials::List { settings, json } => list(&around, settings, *json),
        Credentials::Suggest { json } => suggest::run(&around, *json),
        Credentials::Add(add) => edit::add(&around, add),
        Credentials::Test { name, path, settings, json } => {
            test(&around, (name.as_deref(), path.as_deref()), settings, *json)
        }
        Credentials::Remove { name, json } => edit::remove(&around, name, *json),
    }
}

fn list(around: &ProcessEnv, settings: &SettingsChoice, as_json: bool) -> exit::Outcome {
    let resolved = chosen(around, settings)?.resolved;
    let (credentials, of_ssh, signing) = (resolved.brokered, resolved.ssh, resolved.signing);
    let mut page = Page::new(around);
    if as_json {
        page.json(&json!({
            "credentials": credentials.iter().map(described).collect::<Vec<_>>(),
            "ssh": of_ssh.iter().map(described_ssh).collect::<Vec<_>>(),
            "signing": signing.as_ref().map(described_signing),
        }));
    } else if credentials.is_empty() && of_ssh.is_empty() && signing.is_none() {
        page.line("no credentials; `portcullis credentials suggest` proposes some");
    } else {
        let row_of_ssh = |one: &SshCredential| {
            let own = tinted("your own ssh", Tint::Faint);
            vec![cell(&one.name), cell(&one.host.with_port(one.port)), cell("ssh"), cell(""), own]
        };
        let row = |credential: &BrokeredCredential| {
            let variables: Vec<&str> =
                credential.variables.iter().map(|variable| variable.name.as_str()).collect();
            vec![
                cell(&credential.name),
                cell(&place(credential)),
                cell(form(credential)),
                cell(&variables.join(", ")),
                tinted(&words(&credential.source), Tint::Faint),
            ]
        };
        let row_of_signing = |one: &SigningCredential| {
            let (program, key) = signer(one);
            vec![cell(&one.name), cell(SIGNED), cell(program), cell(""), tinted(key, Tint::Faint)]
        };
        let rows = credentials.iter().map(row).chain(of_ssh.iter().map(row_of_ssh));
        let rows = rows.chain(signing.iter().map(row_of_signing));
        page.table("", &rows.collect::<Vec<_>>());
    }
    page.print()?;
    Ok(Exit::Done)
}

fn test(
    around: &ProcessEnv,
    (name, path): (Option<&str>, Option<&str>),
    settings: &SettingsChoice,
    as_json: bool,
) -> exit::Outcome {
    let loaded = chosen(around, settings)?;
    let resolved = &loaded.resolved;
    let reach = UntrustedPaths::for_project(resolved, &around.homes());
    let sources = CredentialSources::new(around, reach, None);
    let is_meant = |one: &str| name.is_none_or(|name| name == one);
    let mut tested: Vec<(&str, String, Tested)> = Vec::new();
    for one in resolved.brokered.iter().filter(|one| is_meant(&one.name)) {
        tested.push((&one.name, place(one), credential_test::brokered(&sources, one, path)));
    }
    for one in resolved.ssh.iter().filter(|one| is_meant(&one.name)) {
        let place = one.host.with_port(one.port);
        tested.push((&one.name, place, credential_test::ssh(&sources, one, path)));
    }
    for one in resolved.signing.iter().filter(|one| is_meant(&one.name)) {
        tested.push((&one.name, SIGNED.to_owned(), credential_test::signing(&sources, one)));
    }
    if let Some(name) = name.filter(|_| tested.is_empty()) {
        anyhow::bail!(
            "no credential is called `{}` here; `portcullis credentials list` shows them",
            portcullis_text::escape(name)
        );
    }
    let has_failed = tested.iter().any(|(.., tested)| matches!(tested, Tested::Fails(_)));
    let mut page = Page::new(around);
    if as_json {
        let one = |(name, place, tested): &(&str, String, Tested)| {
            let (works, why) = match tested {
                Tested::Works(why) => (Some(true), why),
                Tested::Unknown(why) => (None, why),
                Tested::Fails(why) => (Some(false), why),
            };
            json!({ "name": name, "place": place, "works": works, "text": why })
        };
        page.json(&json!({ "credentials": tested.iter().map(one).collect::<Vec<_>>() }));
    } else if tested.is_empty() {
        page.line("no credentials; `portcullis credentials suggest` proposes some");
    } else {
        let row = |(name, place, tested): &(&str, String, Tested)| {
            let outcome = match tested {
                Tested::Works(why) => tinted(why, Tint::Good),
                Tested::Unknown(why) => tinted(why, Tint::Faint),
                Tested::Fails(why) => tinted(why, Tint::Bad),
            };
            vec![cell(name), cell(place), outcome]
        };
        page.table("", &tested.iter().map(row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(if has_failed { Exit::Bad } else { Exit::Done })
}

fn described(credential: &BrokeredCredential) -> Value {
    let variables: Vec<&str> = credential.variables.iter().map(|variable| variable.name.as_str()).collect();
    json!({
        "name": credential.name, "host": place(credential), "form": form(credential),
        "source": words(&credential.source), "variables": variables, "git": credential.is_for_git,
    })
}

fn described_ssh(one: &SshCredential) -> Value {
    json!({ "name": one.name, "host": one.host.with_port(one.port), "user": one.user })
}

fn described_signing(one: &SigningCredential) -> Value {
    let (form, key) = signer(one);
    json!({ "name": one.name, "form": form, "key": key, "ask": one.ask })
}

/// Returns the form of a key to sign with, and its name.
fn signer(one: &SigningCredential) -> (&'static str, &str) {
    match &one.form {
        SigningForm::Ssh { public_key } => ("ssh", public_key),
        SigningForm::Gpg { key } => ("gpg", key),
    }
}

fn place(credential: &BrokeredCredential) -> String {
    match credential.port {
        443 => credential.host.to_string(),
        port => credential.host.with_port(port),
    }
}

fn form(credential: &BrokeredCredential) -> &'static str {
    match credential.form {
        CredentialForm::Bearer => "bearer",
        CredentialForm::Basic { .. } => "basic",
        CredentialForm::Header(_) => "header",
        CredentialForm::Aws { .. } => "aws",
    }
}
