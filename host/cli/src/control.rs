//! The way into a running session from a second terminal: a socket that only its user can reach.
//!
//! It lies in the session's own directory, which commands and tools do not see. One request a connection: a line
//! of JSON each way. Both ends are this program, so the lines are nobody else's protocol.

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

/// The name of the socket in the session's directory.
const NAME: &str = "control";
/// Longer lines are nothing that this program writes.
const LONGEST_LINE: u64 = 1 << 20;
/// Whoever does not speak within this time does not keep others waiting.
const PATIENCE: Duration = Duration::from_secs(5);
/// What somebody else is told.
const ELSEWHERE: &str = "the session answers its own user alone, in the user and process namespaces that it runs in; \
    run this command there (in the same container, for one), and not in a sandbox of the session";

/// So many are served beside each other.
const AT_ONCE: usize = 16;

/// What can be asked of a running session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Order {
    /// Which questions wait.
    Questions {},
    /// Answers a question with the code of a choice, as it was listed; without one refuses.
    Answer { id: u64, code: Option<String> },
    /// What the session remembers.
    Remembered {},
    /// Takes something back that it remembers.
    Forget { id: u64 },
    /// On which ports its commands listen.
    Ports {},
    /// Opens one of them to this machine.
    OpenPort { port: u16, at: u16 },
    /// Closes it again.
    ClosePort { port: u16 },
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// The questions, the oldest first.
    Questions { questions: Vec<Asked> },
    /// What is remembered.
    Remembered { remembered: Vec<Kept> },
    /// The ports, the lowest first.
    Ports { ports: Vec<Port> },
    /// It was done, in words.
    Done { what: String },
    /// It was not, and why.
    Failed { why: String },
}

/// A question that waits; every text is safe to show.
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

/// One of its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskedChoice {
    /// What is typed for it, with the number that stands nowhere else.
    pub(crate) code: String,
    pub(crate) text: String,
    pub(crate) target: Option<String>,
}

/// A port inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Port {
    pub(crate) port: u16,
    /// Who listens, safe to show.
    pub(crate) program: String,
    /// Their process; 0 when nobody does.
    pub(crate) process: u32,
    /// Where it is open on this machine.
    pub(crate) open_at: Option<String>,
}

/// Something that a session remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept {
    pub(crate) id: u64,
    pub(crate) text: String,
    /// Seconds since 1970-01-01 UTC; 0 as long as the session.
    pub(crate) expires_at: u32,
}

/// A listening socket; it is gone with the value.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Control {
    /// Listens in `directory`, which belongs to the user alone; `answer` is called on a thread of its own for each
    /// order, so that none has to wait for one that takes long.
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
                    // The last of so many is one too many; it sees an end.
                    Ok(_) if Arc::strong_count(&at_once) > AT_ONCE => {}
                    Ok(stream) => {
                        let (answer, place) = (Arc::clone(&answer), Arc::clone(&at_once));
                        let served = move || {
                            // Whoever does not keep to the protocol learns nothing.
                            drop(serve(&stream, &*answer));
                            drop(place);
                        };
                        // With no thread to be had the other side sees an end.
                        drop(thread().spawn(served));
                    }
                    // Out of descriptors, perhaps: trying at once again would change nothing.
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
        // Wakes the listener, so that it sees.
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
    // Whose namespaces cannot be looked at is somebody else. Nothing of theirs is read.
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

/// Asks the session whose directory this is; none where nobody listens.
pub(crate) fn ask(directory: &Path, order: &Order) -> anyhow::Result<Option<Outcome>> {
    let stream = match short(directory, |short| UnixStream::connect(short.join(NAME))) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        stream => stream.context("reaching the session")?,
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    // A session that does not hear us says why before it has read anything.
    let _unheard = writeln!(&stream, "{}", serde_json::to_string(order)?);
    let reply = line(&stream).context("the session did not answer")?;
    serde_json::from_str(&reply).map(Some).context("the session answered something else")
}

/// The directories of all sessions, running or not, by their names.
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

/// The path of a socket has room for 107 bytes only, and a home directory may be longer.
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
            // The slow one may come second: then a few are answered before it.
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
