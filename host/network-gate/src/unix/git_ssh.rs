//! Carries git's protocol between a command and the user's own `ssh`, which runs outside.
//!
//! The client inside sends a request (see `broker::git`), then the bytes of git. It gets messages: a byte for the kind,
//! four bytes for the length, and the text. Keys, agent, known hosts and jump hosts are those of the user's `ssh`.

mod process;
mod silence;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Bytes;
use portcullis_credential_broker::{GREETING, GitRequest, Known, Push, PushEnd, REQUEST_MAX, Ssh, SshHost};
use portcullis_decision::ConnectionRefusal;
use portcullis_decision::request::Stage;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};

use crate::judge::{ConnectionAttempt, Ending};
use crate::ssh_remedy::ssh_remedy;
use crate::unix::budget::Spent;
use crate::unix::clients::Awaited;
use crate::unix::pump::Traffic;
use crate::unix::push_slots::{PUSHES, TooSlow};
use crate::unix::scope::{Scope, Wanted, closing};
use process::Outside;
use silence::Silence;

/// One permit for each `ssh` that runs outside, where the limits of commands do not count.
static PROCESSES: Semaphore = Semaphore::const_new(16);
/// How long the client may take for its request.
const REQUEST: Duration = Duration::from_secs(15);
/// How long errors are read after the output has ended: a process that `ssh` has started can keep them open.
const LAST_ERRORS: Duration = Duration::from_secs(2);
/// How much is read at once.
const PIECE: usize = 32 * 1024;
/// The kinds of messages.
const OUTPUT: u8 = 1;
const ERRORS: u8 = 2;
const END: u8 = 3;
/// The exit status of git's own client for a failure.
const FAILED: u8 = 128;

/// A connection of git to a declared host.
pub(crate) struct Session<'a> {
    scope: &'a Arc<Scope>,
    attempt: &'a ConnectionAttempt,
    request: &'a str,
    wanted: &'a Wanted,
    traffic: Arc<Traffic>,
    spent: Arc<Spent>,
    /// The client's socket, to notice that the client has gone.
    watched: TcpStream,
}

/// Why a connection ended before git was done.
enum Cut {
    Refused(ConnectionRefusal),
    Unreachable(String),
    /// The client has gone.
    Abandoned,
}

impl From<io::Error> for Cut {
    fn from(_error: io::Error) -> Self {
        Self::Abandoned
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        scope: &'a Arc<Scope>,
        attempt: &'a ConnectionAttempt,
        request: &'a str,
        wanted: &'a Wanted,
        (traffic, watched): (&Arc<Traffic>, TcpStream),
    ) -> Self {
        let limit = scope.judge.budget(attempt);
        let spent = scope.shared.budgets.account(&wanted.target, wanted.port, limit);
        Self { scope, attempt, request, wanted, traffic: Arc::clone(traffic), spent, watched }
    }

    /// Carries one request of git.
    pub(crate) async fn carry(
        self,
        (host, ssh): (Arc<SshHost>, Arc<dyn Ssh>),
        mut client: TcpStream,
        beginning: Vec<u8>,
    ) -> Ending {
        let judged = match self.requested(&mut client, beginning).await {
            Ok(request) => self.cleared(&host, &request, &client).await,
            Err(cut) => Err(cut),
        };
        let carried = match judged {
            Ok(request) => self.run(request, ssh, &mut client).await,
            Err(cut) => Err(cut),
        };
        let (ending, why) = match carried {
            Ok(()) => return Ending::Closed,
            Err(Cut::Abandoned) => return Ending::Closed,
            Err(Cut::Unreachable(why)) => (Ending::Unreachable(why.clone()), why),
            Err(Cut::Refused(refusal)) => (Ending::Refused(refusal.clone()), refusal.text),
        };
        let text = format!("portcullis: {why}\n");
        let end = [message(ERRORS, text.as_bytes()), message(END, &[FAILED])].concat();
        crate::unix::refuse::say(client, &end).await;
        ending
    }

    /// Reads the request of the client, up to the zero byte that ends it.
    async fn requested(&self, client: &mut TcpStream, beginning: Vec<u8>) -> Result<Vec<u8>, Cut> {
        let mut request = beginning;
        let is_whole = |request: &[u8]| request.iter().filter(|&&byte| byte == 0).count() >= 4;
        let reading = async {
            while !is_whole(&request) {
                let is_ours = request.iter().zip(GREETING).all(|(one, other)| one == other);
                if !is_ours || request.len() >= REQUEST_MAX {
                    return Err(Cut::Refused(foreign()));
                }
                // Byte by byte: what follows belongs to git.
                request.push(client.read_u8().await?);
            }
            Ok(())
        };
        timeout(REQUEST, reading).await.unwrap_or_else(|_late| Err(Cut::Refused(foreign())))?;
        match request.strip_prefix(GREETING) {
            Some(rest) => Ok(rest.to_vec()),
            None => Err(Cut::Refused(foreign())),
        }
    }

    /// Has the request decided, and its use of the user's keys logged.
    async fn cleared(&self, host: &SshHost, request: &[u8], client: &TcpStream) -> Result<GitRequest, Cut> {
        let request = host.judge(request).map_err(Cut::Refused)?;
        let attempt = ConnectionAttempt { credential: Some(host.name.clone()), ..self.attempt.clone() };
        let stage = Stage::Http(request.head.clone());
        let cleared = self.scope.clear_stage(&attempt, stage, self.wanted, client).await;
        cleared.map_err(|refusal| refusal.map_or(Cut::Abandoned, Cut::Refused))?;
        let (judge, id) = (Arc::clone(&self.scope.judge), self.request.to_owned());
        let (name, head) = (host.name.clone(), request.head.clone());
        let recorded = self.scope.shared.decider.ask(move || judge.credential_used(&id, &name, &head)).await;
        recorded.ok_or_else(|| Cut::Refused(closing()))?;
        Ok(request)
    }

    /// Runs the user's `ssh` for a request that was permitted.
    async fn run(&self, request: GitRequest, ssh: Arc<dyn Ssh>, client: &mut TcpStream) -> Result<(), Cut> {
        let host = request.command.host.clone();
        let command = request.command;
        let _process = tokio::select! {
            permit = PROCESSES.acquire() => permit.map_err(|error| Cut::Unreachable(error.to_string()))?,
            () = self.scope.gone(Awaited::Server, self.wanted, &self.watched) => return Err(Cut::Abandoned),
        };
        let silence = Silence::begun(silence::PATIENCE);
        let started = tokio::task::spawn_blocking(move || ssh.start(&command)).await;
        let started = started.map_err(io::Error::other).and_then(|started| started);
        let mut outside = started
            .and_then(Outside::new)
            .map_err(|error| Cut::Unreachable(format!("running your `ssh` for `{host}`: {error}")))?;
        let Some((mut input, mut output, mut errors)) = outside.take() else { return Err(Cut::Abandoned) };
        let (mut from_client, mut to_client) = client.split();
        let mut said = Vec::new();
        let up = async {
            match request.push {
                Some(push) => {
                    let body = self.pushed(push, &mut from_client).await?;
                    self.send(&body, &mut input, &silence).await?;
                }
                None => {
                    let mut piece = vec![0; PIECE];
                    loop {
                        let count = from_client.read(&mut piece).await?;
                        if count == 0 {
                            break;
                        }
                        self.send(piece.get(..count).unwrap_or_default(), &mut input, &silence).await?;
                    }
                }
            }
            drop(input);
            // The client has nothing more to say; the answer ends the connection.
            std::future::pending::<Result<(), Cut>>().await
        };
        let down = async {
            let (mut piece, mut text) = (vec![0; PIECE], vec![0; 4096]);
            let (mut has_errors, mut end) = (true, None::<Instant>);
            while end.is_none() || has_errors {
                tokio::select! {
                    count = output.read(&mut piece), if end.is_none() => {
                        let count = count.unwrap_or(0);
                        silence.answered();
                        self.traffic.received.fetch_add(length(count), Ordering::Relaxed);
                        if count == 0 {
                            end = Some(Instant::now() + LAST_ERRORS);
                        } else {
                            to_client.write_all(&message(OUTPUT, piece.get(..count).unwrap_or_default())).await?;
                        }
                    }
                    count = errors.read(&mut text), if has_errors => {
                        let count = count.unwrap_or(0);
                        has_errors = count > 0;
                        let heard = text.get(..count).unwrap_or_default();
                        process::keep_end(&mut said, heard);
                        if has_errors {
                            to_client.write_all(&message(ERRORS, heard)).await?;
                        }
                    }
                    () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => break,
                }
            }
            Ok::<(), Cut>(())
        };
        tokio::select! {
            cut = up => cut?,
            ended = down => ended?,
            () = self.scope.gone(Awaited::Server, self.wanted, &self.watched) => return Err(Cut::Abandoned),
            () = silence.is_too_long() => return Err(Cut::Unreachable(process::silent(&host))),
        }
        let status = outside.ended().await;
        if let Some(remedy) = ssh_remedy(status, &said, &host) {
            return Err(Cut::Unreachable(remedy));
        }
        to_client.write_all(&message(END, &[status])).await?;
        to_client.shutdown().await?;
        Ok(())
    }

    /// Reads a push as a whole, and has it judged. Its place is kept until it has been sent.
    async fn pushed(&self, push: Push, from: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, Cut> {
        let failed = |error: &dyn std::fmt::Display| Cut::Unreachable(error.to_string());
        let mut place = PUSHES.take().await.map_err(|error| failed(&error))?;
        let refused = |why: String| Cut::Refused(ConnectionRefusal::by_host("host.push-rule", why));
        let most = push.bytes_max();
        let (mut body, mut end) = (Vec::new(), PushEnd::default());
        let mut piece = vec![0; PIECE];
        loop {
            let read = place.read(body.len(), from.read(&mut piece)).await;
            let count = read.map_err(|TooSlow| refused(TooSlow::WHY.to_owned()))??;
            if count == 0 {
                // Cut in the middle, nothing of it is sent.
                return Err(Cut::Abandoned);
            }
            body.extend_from_slice(piece.get(..count).unwrap_or_default());
            if length(body.len()) > most {
                let why =
                    format!("the push is not sent: it is larger than the {most} bytes that its rule allows");
                return Err(refused(why));
            }
            // A client that leaves does not end the work on its push, so the place is kept until then.
            let looked = tokio::task::spawn_blocking(move || (end.look(&body), end, body, place));
            let known;
            (known, end, body, place) = looked.await.map_err(|error| failed(&error))?;
            if known == Known::All {
                let judging =
                    tokio::task::spawn_blocking(move || push.judge(&body).map(|()| place.hold(body))).await;
                return judging.map_err(|error| failed(&error))?.map_err(Cut::Refused);
            }
        }
    }

    /// Sends bytes of git, within the budget.
    async fn send(
        &self,
        bytes: &[u8],
        input: &mut (impl AsyncWrite + Unpin),
        silence: &Silence,
    ) -> Result<(), Cut> {
        self.traffic.sent.fetch_add(length(bytes.len()), Ordering::Relaxed);
        if !self.spent.spend(length(bytes.len())) {
            let more = self.scope.clear_more(self.attempt, &self.spent, self.wanted, &self.watched).await;
            more.map_err(|refusal| refusal.map_or(Cut::Abandoned, Cut::Refused))?;
        }
        silence.asked();
        // If `ssh` has ended, its own words say why.
        drop(input.write_all(bytes).await);
        Ok(())
    }
}

fn message(kind: u8, text: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    message.extend_from_slice(text);
    message
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn foreign() -> ConnectionRefusal {
    let why = "your own `ssh` reaches this host for git, and other programs have no key for it; \
               inside, git finds the way by GIT_SSH_COMMAND";
    ConnectionRefusal::by_host("host.git-only", why)
}
