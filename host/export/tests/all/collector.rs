//! A collector that speaks HTTP, and does what a test tells it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What a collector does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// It takes the batch, and answers with a status line, headers and a body.
    Take(&'static str),
    /// It takes the batch, and closes the connection without an answer.
    TakeInSilence,
    /// It answers with a status line, headers and a body, and takes nothing.
    Refuse(&'static str),
}

pub(crate) const OK: Reply = Reply::Take("200 OK\r\n\r\n{}");

/// A record as the collector got it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) is_repeated: bool,
    pub(crate) attributes: Vec<(String, String)>,
}

impl Received {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

type Decide = dyn Fn(&[Received], usize) -> Reply + Send + Sync;

/// A collector of OTLP on loopback.
pub(crate) struct Collector {
    pub(crate) port: u16,
    pub(crate) received: Arc<Mutex<Vec<Received>>>,
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    /// Starts a collector; `decide` gets the records of a request and the number of requests before it.
    pub(crate) fn start(decide: impl Fn(&[Received], usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let collector = Self { port, received: Arc::default(), heads: Arc::default() };
        let (received, heads) = (Arc::clone(&collector.received), Arc::clone(&collector.heads));
        thread::spawn(move || {
            let decide: Box<Decide> = Box::new(decide);
            let mut count = 0;
            for stream in listener.incoming().flatten() {
                serve(stream, decide.as_ref(), &mut count, (&received, &heads));
            }
        });
        collector
    }

    pub(crate) fn destination(&self) -> portcullis_export::Destination {
        crate::world::destination(&format!(
            "format = \"otlp\"\nto = \"http://127.0.0.1:{}/v1/logs\"",
            self.port
        ))
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("alive").clone()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.received().into_iter().map(|one| one.id).collect()
    }
}

fn serve(
    stream: TcpStream,
    decide: &Decide,
    count: &mut usize,
    (received, heads): (&Mutex<Vec<Received>>, &Mutex<Vec<String>>),
) {
    let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
    let mut stream = stream;
    while let Some((head, body)) = request(&mut reader) {
        let records = records(&body);
        let reply = decide(&records, *count);
        *count += 1;
        heads.lock().expect("alive").push(head);
        if !matches!(reply, Reply::Refuse(_)) {
            received.lock().expect("alive").extend(records);
        }
        match reply {
            Reply::Take(answer) | Reply::Refuse(answer) => {
                let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
                let written =
                    write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                if written.is_err() {
                    return;
                }
            }
            Reply::TakeInSilence => return,
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn records(body: &[u8]) -> Vec<Received> {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().expect("records");
    records.iter().map(received).collect()
}

fn received(record: &Value) -> Received {
    let attributes: Vec<(String, String)> = record["attributes"]
        .as_array()
        .expect("attributes")
        .iter()
        .map(|one| {
            let value = &one["value"];
            let text =
                value["stringValue"].as_str().map_or_else(|| value["boolValue"].to_string(), str::to_owned);
            (one["key"].as_str().expect("a key").to_owned(), text)
        })
        .collect();
    let value = |name: &str| attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let is_repeated = value("portcullis.repeated").is_some();
    Received { id: value("log.record.uid").expect("an id"), is_repeated, attributes }
}
