//! Access to a running session from a second terminal, through a unix socket that only its user can reach.
//!
//! The socket lies in the session's own directory, which commands and tools cannot see. Each connection carries one
//! request and one reply, each a line of JSON. Both ends are this program, so the format is private.

mod orders;
mod peer;

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

pub(crate) use orders::listen_for;

/// Name of the socket in the session's directory.
const NAME: &str = "control";
/// Maximum length of a line; this program never writes longer ones.
const LONGEST_LINE: u64 = 1 << 20;
/// Time in which a client must send its request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The reply to clients that are not the user.
const ELSEWHERE: &str = "the session answers its own user alone, in the user and process namespaces that it runs in; \
    run this command there (in the same container, for one), and not in a sandbox of the session";

/// Maximum number of concurrent connections.
const AT_ONCE: usize = 16;

/// A request to a running session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Order {
    /// Lists the open questions.
    Questions {},
    /// Answers a question with the code of a listed choice; without a code refuses it.
    Answer { id: u64, code: Option<String> },
    /// Lists the answers that the session remembers.
    Remembered {},
    /// Forgets an answer.
    Forget { id: u64 },
    /// Lists the ports on which its commands listen.
    Ports {},
    /// Opens a port to this machine.
    OpenPort { port: u16, at: u16 },
    /// Closes an open port.
    ClosePort { port: u16 },
}

/// The reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// The open questions, the oldest first.
    Questions { questions: Vec<Asked> },
    /// The remembered answers.
    Remembered { remembered: Vec<Kept> },
    /// The ports, the lowest first.
    Ports { ports: Vec<Port> },
    /// The request was carried out; a description.
    Done { what: String },
    /// The request failed; the reason.
    Failed { why: String },
}

/// An open question; all texts are safe to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    pub(crate) id: u64,
    /// The project of the session.
    pub(crate) project: String,
    pub(crate) title: String,
    pub(crate) subject: String,
    pub(crate) asker: String,
    pub(crate) reason: String,
    pub(crate) policy: String,
    pub(crate) rule: String,
    pub(crate) quote: Option<String>,
    pub(crate) choices: Vec<AskedChoice>,
}

/// A choice of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskedChoice {
    /// The text to type, with a number that is shown nowhere else.
    pub(crate) code: String,
    pub(crate) text: String,
    pub(crate) target: Option<String>,
}

/// A port inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Port {
    pub(crate) port: u16,
    /// The listening program, safe to show.
    pub(crate) program: String,
    /// Its process id; 0 if none listens.
    pub(crate) process: u32,
    /// Its address on this machine, if it is open.
    pub(crate) open_at: Option<String>,
}

/// An answer that a session remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept {
    pub(crate) id: u64,
    pub(crate) text: String,
    /// Time of expiry, in seconds since 1970-01-01 UTC; 0 means the end of the session.
    pub(crate) expires_at: u32,
}

/// A listening socket, removed on drop.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Control {
    /// Listens in `directory`, which only the user can access.
    ///
    /// Calls `answer` on a new thread for each request, so that a slow one does not block others.
    pub(crate) fn listen(
        directory: &Path,
        answer: impl Fn(Order) -> Outcome + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let path = directory.join(NAME);
        let listener = short(directory, |short| UnixListener::bind(short.join(NAME)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = || thread::Builder::new().name("control".to_owned());
        let (answer, at_once) = (Arc::new(answer), Arc::new(()));
        thread().spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                match stream {
                    // Over the limit: the client sees its connection closed.
                    Ok(_) if Arc::strong_count(&at_once) > AT_ONCE => {}
                    Ok(stream) => {
                        let (answer, place) = (Arc::clone(&answer), Arc::clone(&at_once));
                        let served = move || {
                            // A client that breaks the protocol gets no reply.
                            drop(serve(&stream, &*answer));
                            drop(place);
                        };
                        // Without a thread the client sees its connection closed.
                        drop(thread().spawn(served));
                    }
                    // Probably out of file descriptors; wait before trying again.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        })?;
        Ok(Self { path, stop })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Connect to wake the listener.
        if let Some(directory) = self.path.parent() {
            let _woken = short(directory, |short| UnixStream::connect(short.join(NAME)));
        }
        let _gone_with_its_directory = std::fs::remove_file(&self.path);
    }
}

fn serve(stream: &UnixStream, answer: &impl Fn(Order) -> Outcome) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut writer = stream;
    // A peer whose namespaces cannot be read is not the user. Its request is not read.
    if !peer::is_the_user(stream).unwrap_or(false) {
        let outcome = Outcome::Failed { why: ELSEWHERE.to_owned() };
        return Ok(writeln!(writer, "{}", serde_json::to_string(&outcome)?)?);
    }
    let order = line(stream)?;
    let outcome = match portcullis_rpc::object(order.as_bytes()) {
        Err(error) => Outcome::Failed { why: error.to_string() },
        Ok(order) => match serde_json::from_value(serde_json::Value::Object(order)) {
            Err(error) => Outcome::Failed { why: error.to_string() },
            Ok(order) => answer(order),
        },
    };
    Ok(writeln!(writer, "{}", serde_json::to_string(&outcome)?)?)
}

/// Sends a request to the session in this directory, or returns `None` if no session listens.
pub(crate) fn ask(directory: &Path, order: &Order) -> anyhow::Result<Option<Outcome>> {
    let stream = match short(directory, |short| UnixStream::connect(short.join(NAME))) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        stream => stream.context("reaching the session")?,
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    // A session that refuses us replies before it reads the request.
    let _unheard = writeln!(&stream, "{}", serde_json::to_string(order)?);
    let reply = line(&stream).context("the session did not answer")?;
    serde_json::from_str(&reply).map(Some).context("the session answered something else")
}

/// Returns the directories of all sessions, running or not, by name.
pub(crate) fn sessions(parent: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let entries = match parent.read_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("listing `{}`", parent.display()))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn line(stream: &UnixStream) -> anyhow::Result<String> {
    let mut text = String::new();
    BufReader::new(stream.take(LONGEST_LINE)).read_line(&mut text)?;
    if !text.ends_with('\n') {
        bail!("no whole line came");
    }
    Ok(text)
}

/// Runs `act` with a short path to the directory.
///
/// Socket addresses are limited to 107 bytes, and a home directory can have a longer path.
fn short<T>(directory: &Path, act: impl FnOnce(&Path) -> std::io::Result<T>) -> std::io::Result<T> {
    use std::os::fd::AsRawFd as _;
    let handle = std::fs::File::open(directory)?;
    act(Path::new(&format!("/proc/self/fd/{}", handle.as_raw_fd())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> Outcome {
        Outcome::Done { what: "so".to_owned() }
    }

    #[test]
    fn an_order_goes_there_and_its_outcome_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        assert_eq!(ask(&deep, &Order::Questions {}).unwrap(), None, "nobody listens yet");
        let seventh = Order::Forget { id: 7 };
        let control = Control::listen(&deep, |order| match order == (Order::Forget { id: 7 }) {
            true => done(),
            false => Outcome::Failed { why: format!("{order:?}") },
        })
        .unwrap();
        assert_eq!(ask(&deep, &seventh).unwrap(), Some(done()));
        let answer = Order::Answer { id: 1, code: Some("s".to_owned()) };
        assert!(matches!(ask(&deep, &answer).unwrap(), Some(Outcome::Failed { .. })));
        drop(control);
        assert_eq!(ask(&deep, &Order::Questions {}).unwrap(), None);
        assert!(deep.read_dir().unwrap().next().is_none(), "nothing is left");
    }

    #[test]
    fn an_order_does_not_wait_for_one_that_takes_long() {
        let directory = tempfile::tempdir().unwrap();
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let waits = std::sync::Mutex::new(waits);
        let _control = Control::listen(directory.path(), move |order| {
            if order == (Order::Ports {}) {
                waits.lock().unwrap().recv().unwrap();
            }
            done()
        })
        .unwrap();
        thread::scope(|scope| {
            let slow = scope.spawn(|| ask(directory.path(), &Order::Ports {}).unwrap());
            // The slow request may arrive second, after some of these.
            for _ in 0..AT_ONCE / 2 {
                assert_eq!(ask(directory.path(), &Order::Questions {}).unwrap(), Some(done()));
            }
            assert!(!slow.is_finished());
            go_on.send(()).unwrap();
            assert_eq!(slow.join().unwrap(), Some(done()));
        });
    }

    #[test]
    fn nonsense_is_answered_and_does_not_end_the_listener() {
        let directory = tempfile::tempdir().unwrap();
        let _control = Control::listen(directory.path(), |_| done()).unwrap();
        for nonsense in [
            "{}\n",
            "[]\n",
            "{\"do\":\"fly\"}\n",
            "{\"do\":\"questions\",\"more\":1}\n",
            "{\"do\":\"questions\",\"do\":\"forget\"}\n",
            "x",
        ] {
            let stream = UnixStream::connect(directory.path().join(NAME)).unwrap();
            (&stream).write_all(nonsense.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut reply = String::new();
            BufReader::new(&stream).read_line(&mut reply).unwrap();
            assert!(!reply.contains("done"), "{nonsense}: {reply}");
        }
        assert_eq!(ask(directory.path(), &Order::Questions {}).unwrap(), Some(done()));
    }
}
