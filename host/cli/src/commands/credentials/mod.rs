//! `portcullis credentials`: credentials that commands use without having them.

mod declared;
mod edit;
mod services;
mod suggest;

pub(super) use declared::names;

use portcullis_bootstrap::credentials::{CredentialSources, words};
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::untrusted_paths::UntrustedPaths;
use portcullis_session::CredentialReader as _;
use portcullis_settings_format::{BrokeredCredential, CredentialForm, SshCredential};
use serde_json::{Value, json};

use declared::loaded;

use crate::args::credentials::Credentials;
use crate::exit::Exit;
use crate::output::{Page, Tint, cell, tinted};

/// Runs the subcommand.
pub(crate) fn run(credentials: &Credentials) -> crate::exit::Outcome {
    let around = ProcessEnv::read()?;
    match credentials {
        Credentials::List { json } => list(&around, *json),
        Credentials::Suggest { json } => suggest::run(&around, *json),
        Credentials::Add(add) => edit::add(&around, add),
        Credentials::Test { name, json } => test(&around, name.as_deref(), *json),
        Credentials::Remove { name, json } => edit::remove(&around, name, *json),
    }
}

fn list(around: &ProcessEnv, as_json: bool) -> crate::exit::Outcome {
    let resolved = loaded(around)?.resolved;
    let (credentials, of_ssh) = (resolved.brokered, resolved.ssh);
    let mut page = Page::new(around);
    if as_json {
        page.json(&json!({
            "credentials": credentials.iter().map(described).collect::<Vec<_>>(),
            "ssh": of_ssh.iter().map(described_ssh).collect::<Vec<_>>(),
        }));
    } else if credentials.is_empty() && of_ssh.is_empty() {
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
        let rows = credentials.iter().map(row).chain(of_ssh.iter().map(row_of_ssh));
        page.table("", &rows.collect::<Vec<_>>());
    }
    page.print()?;
    Ok(Exit::Done)
}

fn test(around: &ProcessEnv, name: Option<&str>, as_json: bool) -> crate::exit::Outcome {
    let loaded = loaded(around)?;
    let is_meant = |credential: &&BrokeredCredential| name.is_none_or(|name| name == credential.name);
    let chosen: Vec<&BrokeredCredential> = loaded.resolved.brokered.iter().filter(is_meant).collect();
    if let Some(name) = name.filter(|_| chosen.is_empty()) {
        anyhow::bail!(
            "no credential is called `{}` here; `portcullis credentials list` shows them",
            portcullis_text::escape(name)
        );
    }
    let reach = UntrustedPaths::for_project(&loaded.resolved, &around.homes());
    let sources = CredentialSources::new(around, reach, None);
    let read: Vec<_> = chosen.into_iter().map(|one| (one, sources.read(&one.source).map(drop))).collect();
    let exit = if read.iter().all(|(_, read)| read.is_ok()) { Exit::Done } else { Exit::Bad };
    let mut page = Page::new(around);
    if as_json {
        let one = |(credential, read): &(&BrokeredCredential, Result<(), String>)| json!({ "name": credential.name, "readable": read.is_ok(), "error": read.as_ref().err() });
        page.json(&json!({ "credentials": read.iter().map(one).collect::<Vec<_>>() }));
    } else if read.is_empty() {
        page.line("no credentials; `portcullis credentials suggest` proposes some");
    } else {
        let row = |(credential, read): &(&BrokeredCredential, Result<(), String>)| {
            let outcome = match read {
                Ok(()) => tinted("can be read", Tint::Good),
                Err(why) => tinted(why, Tint::Bad),
            };
            vec![cell(&credential.name), cell(&place(credential)), outcome]
        };
        page.table("", &read.iter().map(row).collect::<Vec<_>>());
    }
    page.print()?;
    Ok(exit)
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
    }
}
