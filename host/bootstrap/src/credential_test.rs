//! Finds out whether a credential works: whether it can be read, and whether its server accepts it.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use portcullis_decision::pattern::RequestPath;
use portcullis_session::{AwsLimits, CredentialReader as _, Form, Probe, SshCommand, probe, ssh_remedy};
use portcullis_settings_format::{BrokeredCredential, CredentialForm, SigningCredential, SshCredential};

use crate::credential_services::SERVICES;
use crate::credentials::{CredentialSources, words};
use crate::own_programs::ended;

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The port of ssh.
const SSH_PORT: u16 = 22;
/// How much of the errors of `ssh` is read.
const SAID_MAX: u64 = 4096;
/// A commit that stands in no repository, to see whether a key signs.
const TRIAL: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
author portcullis <portcullis@localhost> 0 +0000\n\
committer portcullis <portcullis@localhost> 0 +0000\n\n\
A trial of `portcullis credentials test`\n";

/// The result of a test, with a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tested {
    /// It works.
    Works(String),
    /// It can be read, and nothing says whether it works.
    Unknown(String),
    /// It does not work.
    Fails(String),
}

/// Tests a credential for requests. `path` is that of the request, if the user names one.
#[must_use]
pub fn brokered(sources: &CredentialSources, credential: &BrokeredCredential, path: Option<&str>) -> Tested {
    let secret = match sources.read(&credential.source, &credential.form) {
        Ok(secret) => secret,
        Err(why) => return Tested::Fails(why),
    };
    let Some(path) = path.map(str::to_owned).or_else(|| usual_path(credential)) else {
        return Tested::Unknown(
            "it can be read; name a path with `--path`, since `for` names none to try".to_owned(),
        );
    };
    if !covers(credential, &path) {
        return Tested::Fails(format!("`for` does not cover GET {path}, so nothing was sent"));
    }
    let wanted = Probe {
        host: credential.host.clone(),
        port: credential.port,
        path,
        form: form(&credential.form),
        patience: PATIENCE,
    };
    let status = match probe(&wanted, Some(&secret)) {
        Ok(status) => status,
        Err(why) => return Tested::Fails(format!("it can be read, but {why}")),
    };
    verdict(status, || probe(&wanted, None).ok(), (&wanted.path, &words(&credential.source)))
}

/// Judges the answer to a request with the credential; `anonymous` sends the same request without it.
fn verdict(status: u16, anonymous: impl Fn() -> Option<u16>, (path, source): (&str, &str)) -> Tested {
    let accepted = |other: u16| {
        Tested::Works(format!(
            "the server accepts it: GET {path} is answered with {status}, and with {other} without it"
        ))
    };
    match status {
        401 => Tested::Fails(format!(
            "the server refuses it (401): it may have expired or been revoked; renew it in {source}"
        )),
        403 => Tested::Fails(format!(
            "the server refuses GET {path} (403): the credential may lack the right to it, or have expired; name another path with `--path`, or renew it in {source}"
        )),
        429 => Tested::Unknown("the server has had too many requests (429); try again later".to_owned()),
        500.. => Tested::Unknown(format!("the server has a fault ({status}); try again later")),
        _ => match anonymous() {
            Some(other @ (401 | 403)) => accepted(other),
            Some(other @ 404) if status != other => accepted(other),
            _ => Tested::Unknown(format!(
                "it can be read; the server answers GET {path} with {status}, with the credential and without it, \
                 so name a path that needs it with `--path`"
            )),
        },
    }
}

fn form(form: &CredentialForm) -> Form {
    match form {
        CredentialForm::Bearer => Form::Bearer,
        CredentialForm::Basic { user } => Form::Basic { user: user.clone() },
        CredentialForm::Header(name) => Form::Header(name.clone()),
        CredentialForm::Aws { services, regions } => {
            Form::Aws(AwsLimits { services: services.clone(), regions: regions.clone() })
        }
    }
}

/// Returns a path that shows whether the credential is accepted: that of a known service, or one of `for`.
fn usual_path(credential: &BrokeredCredential) -> Option<String> {
    let host = credential.host.to_string();
    let known = SERVICES.iter().filter(|service| service.host == host).filter_map(|service| service.probe);
    let named = credential.purpose.iter().filter_map(|pattern| pattern.example("GET"));
    let git = |path: String| match path.ends_with("/info/refs") {
        true => format!("{path}?service=git-upload-pack"),
        false => path,
    };
    known.map(str::to_owned).chain(named).find(|path| covers(credential, path)).map(git)
}

fn covers(credential: &BrokeredCredential, path: &str) -> bool {
    let path = path.split_once('?').map_or(path, |(path, _query)| path);
    let path = RequestPath::parse(path);
    path.is_some_and(|path| credential.purpose.iter().any(|pattern| pattern.matches("GET", &path)))
}

/// Tests whether the user's own `ssh` gets into a host. `repository` is asked for, if the user names one.
#[must_use]
pub fn ssh(sources: &CredentialSources, credential: &SshCredential, repository: Option<&str>) -> Tested {
    let host = credential.host.to_string();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    let repository = repository.unwrap_or("portcullis-test");
    if repository.is_empty() || !repository.bytes().all(fits) {
        return Tested::Fails(
            "the path of a repository has letters, digits, `-`, `.`, `_` and `/`".to_owned(),
        );
    }
    let command = SshCommand {
        host: host.clone(),
        port: Some(credential.port).filter(|port| *port != SSH_PORT),
        user: credential.user.clone(),
        command: format!("git-upload-pack '{repository}'"),
        protocol: None,
    };
    let run = || {
        let mut child = sources.start_ssh(&command)?;
        // Git ends the conversation with an empty line of its protocol.
        drop(child.stdin.take().map(|mut input| input.write_all(b"0000")));
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        std::thread::spawn(move || output.map(|mut output| std::io::copy(&mut output, &mut std::io::sink())));
        let errors = std::thread::spawn(move || {
            let mut said = Vec::new();
            // What came before an error is enough to find a remedy.
            drop(errors.map(|errors| errors.take(SAID_MAX).read_to_end(&mut said)));
            said
        });
        let status = ended(&mut child)?;
        std::io::Result::Ok((status, status.and_then(|_| errors.join().ok()).unwrap_or_default()))
    };
    match run() {
        Err(error) => Tested::Fails(format!("running your own `ssh`: {error}")),
        Ok((None, _)) => Tested::Fails(format!(
            "`{host}` does not answer; `ssh -T {host}` in a terminal shows when it does"
        )),
        Ok((Some(status), said)) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
            match ssh_remedy(code, &said, &host) {
                Some(why) => Tested::Fails(why),
                None => Tested::Works(format!("`{host}` lets your own `ssh` in")),
            }
        }
    }
}

/// Tests whether a key signs.
#[must_use]
pub fn signing(sources: &CredentialSources, credential: &SigningCredential) -> Tested {
    match sources.signing_key(&credential.form).and_then(|_key| sources.sign(&credential.form, TRIAL)) {
        Ok(_signature) => Tested::Works("the key signs".to_owned()),
        Err(why) => Tested::Fails(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_judged_by_the_one_without_the_credential() {
        let judged = |status, other: Option<u16>| verdict(status, || other, ("/user", "the variable A"));
        assert!(matches!(judged(200, Some(401)), Tested::Works(_)));
        assert!(matches!(judged(302, Some(403)), Tested::Works(_)));
        assert!(matches!(judged(200, Some(404)), Tested::Works(_)));
        assert!(matches!(judged(404, Some(401)), Tested::Works(_)));
        for (status, other) in
            [(200, Some(200)), (404, Some(404)), (200, None), (429, Some(401)), (503, Some(401))]
        {
            assert!(matches!(judged(status, other), Tested::Unknown(_)), "{status}");
        }
        for status in [401, 403] {
            let Tested::Fails(why) = judged(status, Some(401)) else { panic!("{status}") };
            assert!(why.contains("the variable A") && why.contains("expired"), "{why}");
        }
    }
}
