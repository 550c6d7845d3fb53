//! Signatures of commits and tags, which the host has made outside with a key that commands do not have.

mod git_object;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_approvals::Cancel;
use portcullis_approvals::question::signature::KIND;
use portcullis_decision::request::{Action, Origin, OtherAction};
use portcullis_decision::{AnsweredBy, Effect, RefusalText};
use portcullis_settings_format::{SigningCredential, SigningForm};
use serde_json::json;

use crate::authorized::Authorized;
use crate::session::Session;
use git_object::GitObject;

/// The first word of a request.
const GREETING: &[u8] = b"portcullis-sign/1";
/// The first bytes of answers: with a signature, and with a reason.
const SIGNED: u8 = b'S';
const REFUSED: u8 = b'R';
/// The longest word of a request, in bytes.
const WORD_MAX: u64 = 32;
/// The longest commit or tag, in bytes.
const OBJECT_MAX: usize = 256 * 1024;
/// How much of a longer one is read.
const DRAINED_MAX: u64 = 16 << 20;
/// How long a client may take for its request.
const REQUEST: Duration = Duration::from_secs(15);
/// How many requests are answered at once.
const AT_ONCE: usize = 8;

/// Answers the clients of a session, as long as it lasts.
pub(crate) fn serve(listener: UnixListener, session: Weak<Session>) -> io::Result<()> {
    let serving = move || {
        static OPEN: AtomicUsize = AtomicUsize::new(0);
        while let Ok((stream, _)) = listener.accept() {
            let Some(session) = session.upgrade() else { return };
            if OPEN.fetch_add(1, Ordering::Relaxed) >= AT_ONCE {
                OPEN.fetch_sub(1, Ordering::Relaxed);
                // It may have gone.
                drop(say(stream, REFUSED, b"too many signatures are wanted at once"));
                continue;
            }
            let answering = move || {
                // It may have gone.
                drop(answer(&session, stream));
                OPEN.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new().name("signature".to_owned()).spawn(answering).is_err() {
                OPEN.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::Builder::new().name("signer".to_owned()).spawn(serving).map(drop)
}

/// Answers one client.
fn answer(session: &Session, stream: UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let signed = match wanted(&mut reader) {
        Ok((form, object)) => {
            stream.set_read_timeout(None)?;
            let cancel = Cancel::default();
            let watching = cancel.clone();
            // The client sends nothing more; the end of its connection withdraws the question.
            std::thread::spawn(move || {
                drop(reader.read(&mut [0]));
                watching.cancel();
            });
            signature(session, &form, &object, &cancel)
        }
        Err(error) => Err(format!("the request cannot be read: {error}")),
    };
    match signed {
        Ok(signature) => say(stream, SIGNED, &signature),
        Err(why) => say(stream, REFUSED, why.as_bytes()),
    }
}

fn say(mut stream: UnixStream, kind: u8, text: &[u8]) -> io::Result<()> {
    stream.write_all(&[kind])?;
    stream.write_all(text)?;
    stream.shutdown(Shutdown::Both)
}

/// Reads a request: greeting, form, length and object.
fn wanted(reader: &mut BufReader<UnixStream>) -> io::Result<(String, Vec<u8>)> {
    let mut word = || {
        let mut word = Vec::new();
        reader.by_ref().take(WORD_MAX).read_until(0, &mut word)?;
        match word.pop() {
            Some(0) => Ok(word),
            _ => Err(io::Error::other("a word is missing")),
        }
    };
    if word()? != GREETING {
        return Err(io::Error::other("it is none"));
    }
    let text = |word: Vec<u8>| String::from_utf8(word).map_err(io::Error::other);
    let form = text(word()?)?;
    let length: usize = text(word()?)?.parse().map_err(io::Error::other)?;
    if length > OBJECT_MAX {
        // Unread bytes would reset the connection, and the client would not get the reason.
        let rest = DRAINED_MAX.min(u64::try_from(length).unwrap_or(DRAINED_MAX));
        io::copy(&mut reader.take(rest), &mut io::sink())?;
        return Err(io::Error::other(format!("it is longer than {OBJECT_MAX} bytes")));
    }
    let mut object = vec![0; length];
    reader.read_exact(&mut object)?;
    Ok((form, object))
}

/// Returns the signature, if it may be made.
fn signature(session: &Session, form: &str, object: &[u8], cancel: &Cancel) -> Result<Vec<u8>, String> {
    let signing = session.basis().resolved.signing.clone();
    let signing = signing.filter(|signing| form_name(signing) == form);
    let signing = signing.ok_or("the settings have no such key to sign with")?;
    let read = GitObject::parse(object)?;
    let kind = read.kind.name();
    if !signing.objects.contains(&read.kind) {
        return Err(format!("`for` of the credential `{}` does not have `{kind}`", signing.name));
    }
    let Authorized { decision, permit, request, .. } = authorized(session, &signing, &read, cancel);
    if permit.is_none() {
        return Err(RefusalText::for_decision(&decision).with_next_step(None));
    }
    let signed = session.setup.credentials.sign(&signing.form, object);
    let outcome = match &signed {
        Ok(_) => format!("the {kind} is signed with `{}`", signing.name),
        Err(why) => format!("the {kind} is not signed: {why}"),
    };
    session.outcome(&request, &outcome);
    signed
}

fn authorized(
    session: &Session,
    signing: &SigningCredential,
    read: &GitObject,
    cancel: &Cancel,
) -> Authorized {
    let input = json!({
        "credential": signing.name, "object": read.kind.name(), "by": read.by, "summary": read.summary,
    });
    let action = Action::Other(OtherAction { kind: KIND.to_owned(), input: input.to_string() });
    let request = session.request(Origin::Process, action);
    if !signing.ask {
        let decision = session.decide(&request);
        let has_asked = decision.votes().iter().any(|vote| vote.effect == Some(Effect::Ask));
        if decision.effect() == Effect::Ask && !has_asked {
            let decision = decision.granted(AnsweredBy::Grant, "the settings let commands have this signed");
            return session.record_decision(request, decision);
        }
    }
    session.authorize(request, None, cancel)
}

/// Returns the name that clients have for the program that signs.
const fn form_name(signing: &SigningCredential) -> &'static str {
    match &signing.form {
        SigningForm::Ssh { .. } => "ssh",
        SigningForm::Gpg { .. } => "gpg",
    }
}
