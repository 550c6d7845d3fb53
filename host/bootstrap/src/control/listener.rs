//! The session's end: listens for requests and hands them on.

use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::peer;
use super::protocol::{Order, Outcome};
use super::socket::{NAME, PATIENCE, line, short};

/// The reply to clients that are not the user.
const ELSEWHERE: &str = "the session answers its own user alone, in the user and process namespaces that it runs in; \
    run this command there (in the same container, for one), and not in a sandbox of the session";

/// Maximum number of concurrent connections.
const AT_ONCE: usize = 16;

/// A listening socket, removed on drop.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    stop: Arc<AtomicBool>,
}

impl Control {
    /// Listens in `directory`, which only the user can access.
    ///
    /// Calls `answer` on a new thread for each request, so that a slow one does not block others.
    pub(super) fn listen(
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use super::super::client::ask;
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
        let answer = Order::Answer { id: 1, code: Some("s".to_owned()), why: None };
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
