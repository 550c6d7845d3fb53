//! Signatures of commits and tags, which the host has made outside with a key that commands do not have.

mod slots;
mod wire;

use std::io::{self, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Weak};
use std::time::Instant;

use portcullis_approvals::Cancel;
use portcullis_approvals::question::signature::KIND;
use portcullis_decision::request::{Action, Origin, OtherAction};
use portcullis_decision::{AnsweredBy, Effect, RefusalText};
use portcullis_settings_format::{SigningCredential, SigningForm};
use portcullis_vcs::GitObject;
use serde_json::json;

use crate::authorized::Authorized;
use crate::session::Session;
use slots::{Slot, Slots};
use wire::{REFUSED, SIGNED, Wanted, say};

/// The reason after several refusals of the user.
const PAUSED: &str = "you said no several times in a row; signatures can be asked for again in a minute";

/// Answers the clients of a session, as long as it lasts.
pub(crate) fn serve(listener: UnixListener, session: Weak<Session>) -> io::Result<()> {
    let serving = move || {
        let slots = Arc::new(Slots::default());
        while let Ok((stream, _)) = listener.accept() {
            // Others wait in the queue of the socket.
            let slot = slots.take();
            let Some(session) = session.upgrade() else { return };
            let answering = move || {
                // The client may have gone.
                drop(answer(&session, &slot, stream));
            };
            // Without a thread, the client sees that its connection ends.
            drop(std::thread::Builder::new().name("signature".to_owned()).spawn(answering));
        }
    };
    std::thread::Builder::new().name("signer".to_owned()).spawn(serving).map(drop)
}

/// Answers one client.
fn answer(session: &Session, slot: &Slot, stream: UnixStream) -> io::Result<()> {
    let signed = match wire::read(&stream) {
        Ok(wanted) => {
            let cancel = Cancel::default();
            let (watching, mut watched) = (cancel.clone(), stream.try_clone()?);
            // The client sends nothing more; the end of its connection withdraws the question.
            std::thread::spawn(move || {
                drop(watched.read(&mut [0]));
                watching.cancel();
            });
            signature(session, slot.slots(), &wanted, &cancel)
        }
        Err(error) => Err(format!("the request cannot be read: {error}")),
    };
    match signed {
        Ok(signature) => say(stream, SIGNED, &signature),
        Err(why) => say(stream, REFUSED, why.as_bytes()),
    }
}

/// Returns the signature, if it may be made.
fn signature(
    session: &Session,
    slots: &Slots,
    Wanted { form, object }: &Wanted,
    cancel: &Cancel,
) -> Result<Vec<u8>, String> {
    let signing = session.basis().resolved.signing.clone();
    let signing = signing.filter(|signing| form_name(signing) == form);
    let signing = signing.ok_or("the settings have no such key to sign with")?;
    let read = GitObject::parse(object)?;
    let kind = read.kind.name();
    if !signing.objects.contains(&read.kind) {
        return Err(format!("`for` of the credential `{}` does not have `{kind}`", signing.name));
    }
    let Some(_open) = slots.open(cancel, Instant::now()) else { return Err(PAUSED.to_owned()) };
    let Authorized { decision, permit, request, .. } = authorized(session, &signing, &read, cancel);
    if decision.answered_by() == AnsweredBy::User {
        slots.answered(permit.is_some(), Instant::now());
    }
    if permit.is_none() {
        if decision.answered_by() == AnsweredBy::Withdrawal && slots.is_paused(Instant::now()) {
            return Err(PAUSED.to_owned());
        }
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
