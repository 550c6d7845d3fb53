//! Malformed and hostile input, line by line: the answer to each line, and that the next line still works.

#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use portcullis_rpc::{
    AskChoice, AskParams, ClientNotification, Empty, ErrorCode, ErrorObject, EventNotification,
    HostNotification, Incoming, NoticeLevel, Receiver, Reply, Request, RequestId, RpcError, Sender,
    connection,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// An output that the test can look at.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("poisoned").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Output {
    fn messages(&self) -> Vec<Value> {
        let bytes = self.0.lock().expect("poisoned").clone();
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"client":{"name":"t","version":"1"},"piVersion":"1.5.2","mode":"print","interactive":false,"cwd":"/","agentDir":"/a"}}"#;

fn open(lines: &[u8]) -> (Receiver<std::io::Cursor<Vec<u8>>, Output>, Sender<Output>, Output) {
    let output = Output::default();
    let (receiver, sender) = connection(std::io::Cursor::new(lines.to_vec()), output.clone());
    (receiver, sender, output)
}

/// Greets, sends one line, then a `status`; returns what was answered to the line, which must be refused.
fn refusal(line: &[u8]) -> Value {
    let mut input = format!("{HELLO}\n").into_bytes();
    input.extend_from_slice(line);
    input.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"status\"}\n");
    let (mut receiver, sender, output) = open(&input);
    greet(&mut receiver, &sender);
    let next = receiver.receive().expect("receive");
    assert!(matches!(next, Some(Incoming::Request(_, Request::Status))), "the line was accepted: {next:?}");
    output.messages().remove(1)
}

fn greet(receiver: &mut Receiver<std::io::Cursor<Vec<u8>>, Output>, sender: &Sender<Output>) {
    let Some(Incoming::Request(id, Request::Hello(_))) = receiver.receive().expect("receive") else {
        panic!("no hello")
    };
    sender.respond(id, &Empty {}).expect("respond");
}

fn check(line: &str, id: Value, code: ErrorCode, text: &str) {
    let answer = refusal(line.as_bytes());
    assert_eq!(answer["id"], id, "{line} -> {answer}");
    assert_eq!(answer["error"]["code"], code.number(), "{line} -> {answer}");
    let message = answer["error"]["message"].as_str().expect("message");
    assert!(message.contains(text), "{line} -> {message}");
}

fn message(fields: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0",{fields}}}"#)
}

#[test]
fn what_is_no_json_is_a_parse_error() {
    for line in ["", "{", "nonsense", "{}{}", "{\"a\":1,\"a\":2}", "\u{0}", "{\"jsonrpc\":\"2.0\"\0}"] {
        check(line, Value::Null, ErrorCode::Parse, "");
    }
    check(
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"status"}"#,
        Value::Null,
        ErrorCode::Parse,
        "`id` appears twice",
    );
    check(
        &message(&format!(r#""id":1,"method":"status","params":{}1{}"#, "[".repeat(64), "]".repeat(64))),
        Value::Null,
        ErrorCode::Parse,
        "deeper than 64",
    );
    let answer = refusal(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    assert_eq!(answer["error"]["message"], "the message is not UTF-8");
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    let invalid = ErrorCode::InvalidRequest;
    check("[]", Value::Null, invalid, "batches");
    check("1", Value::Null, invalid, "one object");
    check(r#"{"id":1,"method":"status"}"#, json!(1), invalid, "`jsonrpc`");
    check(r#"{"jsonrpc":"1.0","id":1,"method":"status"}"#, json!(1), invalid, "`jsonrpc`");
    check(&message(r#""id":"a","method":"status""#), Value::Null, invalid, "`id` must be");
    check(&message(r#""id":null,"method":"status""#), Value::Null, invalid, "`id` must be");
    check(&message(r#""id":-1,"method":"status""#), Value::Null, invalid, "`id` must be");
    check(&message(r#""id":1.5,"method":"status""#), Value::Null, invalid, "`id` must be");
    check(&message(r#""id":9007199254740992,"method":"status""#), Value::Null, invalid, "`id` must be");
    check(&message(r#""id":1,"method":7"#), json!(1), invalid, "`method` must be");
    check(&message(r#""id":1,"method":"status","extra":1"#), json!(1), invalid, "unknown field `extra`");
    check(&message(r#""id":1,"method":"status","result":{}"#), json!(1), invalid, "unknown field `result`");
    check(&message(r#""params":{}"#), Value::Null, invalid, "needs a `method`");
}

/// A reply has an id of the host's own: nothing is answered to it, and whoever waits for it hears a no.
#[test]
fn a_reply_that_cannot_be_read_permits_nothing() {
    let bodies = [
        r#""id":1"#.to_owned(),
        r#""id":1,"result":{"choice":0},"error":{}"#.to_owned(),
        r#""id":1,"result":{"choice":0},"more":1"#.to_owned(),
        r#""id":1,"error":7"#.to_owned(),
    ];
    let choices = ["-1", "\"allow\"", "null", "1.5", "[0]", "4294967296"];
    let choices = choices.map(|choice| format!(r#""id":1,"result":{{"choice":{choice}}}"#));
    for body in bodies.into_iter().chain(choices) {
        let input = format!("{HELLO}\n{}\n", message(&body));
        let (mut receiver, sender, output) = open(input.as_bytes());
        greet(&mut receiver, &sender);
        let next = receiver.receive().expect("receive");
        assert!(matches!(next, Some(Incoming::Reply(Reply { outcome: Err(_), .. }))), "{body}: {next:?}");
        assert_eq!(output.messages().len(), 1, "{body}");
    }
}

#[test]
fn unknown_methods_are_told_so() {
    check(&message(r#""id":5,"method":"file/delete""#), json!(5), ErrorCode::MethodNotFound, "`file/delete`");
    check(
        &message(r#""id":5,"method":"cancel","params":{"id":1}"#),
        json!(5),
        ErrorCode::MethodNotFound,
        "`cancel`",
    );
    check(&message(r#""method":"status""#), Value::Null, ErrorCode::MethodNotFound, "`status`");
    let long = "x".repeat(1000);
    let answer = refusal(message(&format!(r#""id":5,"method":"{long}""#)).as_bytes());
    assert!(answer["error"]["message"].as_str().expect("message").len() < 200);
}

#[test]
fn wrong_parameters_are_refused_with_their_reason() {
    let params = ErrorCode::InvalidParams;
    let check = |method: &str, body: &str, text: &str| {
        check(&message(&format!(r#""id":5,"method":"{method}","params":{body}"#)), json!(5), params, text);
    };
    check("status", "[]", "object of parameters");
    check("status", "null", "object of parameters");
    check("status", r#"{"a":1}"#, "unknown field `a`");
    check("decide", "{}", "missing field `callId`");
    check("decide", r#"{"callId":"c","tool":"t","provider":"p","input":[]}"#, "expected a map");
    check(
        "file/open",
        r#"{"callId":"c","path":"a/b","intent":{"kind":"read"}}"#,
        "`a/b` is no absolute path",
    );
    check(
        "file/open",
        r#"{"callId":"c","path":"/a\u0000b","intent":{"kind":"read"}}"#,
        "is no absolute path",
    );
    check("file/open", r#"{"callId":"c","path":"/a","intent":{"kind":"write"}}"#, "unknown variant");
    check(
        "file/open",
        r#"{"callId":"c","path":"/a","intent":{"kind":"read","edits":[]}}"#,
        "unknown field `edits`",
    );
    check("file/open", r#"{"callId":"c","path":"/a","given":"a\u0000","intent":{"kind":"read"}}"#, "NUL");
    check("file/read", r#"{"handle":-1}"#, "invalid value");
    check("file/read", r#"{"handle":4294967296}"#, "invalid value");
    let exec = |fields: &str| {
        format!(
            r#"{{"callId":"c","stream":1,"script":"true","cwd":"/","env":{{}},"origin":"agent"{fields}}}"#
        )
    };
    check("exec", &exec(r#","shell":"/bin/zsh""#), "unknown field `shell`");
    check("exec", &exec(r#","timeoutMs":-5"#), "invalid value");
    check("exec", &exec("").replace("true", "a\\u0000b"), "NUL");
    check("exec", &exec("").replace("{}", r#"{"A=B":"x"}"#), "cannot name a variable");
    check("exec", &exec("").replace("{}", r#"{"":"x"}"#), "cannot name a variable");
    check("exec", &exec("").replace("{}", r#"{"A":"x\u0000"}"#), "NUL");
    check("exec", &exec("").replace("{}", r#"{"A":1}"#), "expected a string");
}

#[test]
fn nothing_is_answered_before_hello() {
    let mut input = message(r#""id":1,"method":"status""#);
    input.push('\n');
    input.push_str(&HELLO.replace("\"protocol\":1", "\"protocol\":2"));
    input.push('\n');
    input.push_str(HELLO);
    input.push('\n');
    input.push_str(&message(r#""id":2,"method":"status""#));
    input.push('\n');
    let (mut receiver, _sender, output) = open(input.as_bytes());
    assert!(matches!(receiver.receive(), Ok(Some(Incoming::Request(_, Request::Hello(_))))));
    // The host has not answered: what came in the meantime is refused.
    assert!(matches!(receiver.receive(), Ok(None)));
    let answers = output.messages();
    assert_eq!(answers[0]["error"]["code"], ErrorCode::NotReady.number());
    assert_eq!(answers[1]["error"]["code"], ErrorCode::VersionMismatch.number());
    assert!(answers[1]["error"]["message"].as_str().expect("text").ends_with("update the host"));
    assert_eq!(answers[2]["error"]["code"], ErrorCode::NotReady.number());
}

#[test]
fn a_hello_that_failed_can_be_said_again_and_one_that_succeeded_cannot() {
    let input = format!("{HELLO}\n{HELLO}\n{HELLO}\n");
    let (mut receiver, sender, output) = open(input.as_bytes());
    let Ok(Some(Incoming::Request(id, _))) = receiver.receive() else { panic!("no hello") };
    sender.fail(id, &ErrorObject::new(ErrorCode::Internal, "settings unreadable")).expect("fail");
    greet(&mut receiver, &sender);
    assert!(matches!(receiver.receive(), Ok(None)));
    assert!(output.messages()[2]["error"]["message"].as_str().expect("text").contains("once"));
}

#[test]
fn ids_and_streams_in_use_are_refused_until_they_are_free() {
    let exec = |id: u32, stream: u32| {
        message(&format!(
            r#""id":{id},"method":"exec","params":{{"callId":"c","stream":{stream},"script":"true","cwd":"/","env":{{}},"origin":"agent"}}"#
        ))
    };
    let input = [HELLO.to_owned(), exec(1, 7), exec(1, 8), exec(2, 7), exec(3, 8), exec(1, 7), String::new()]
        .join("\n");
    let (mut receiver, sender, output) = open(input.as_bytes());
    greet(&mut receiver, &sender);
    let Ok(Some(Incoming::Request(first, Request::Exec(_)))) = receiver.receive() else { panic!("no exec") };
    let Ok(Some(Incoming::Request(third, Request::Exec(_)))) = receiver.receive() else { panic!("no exec") };
    assert_eq!(u64::from(third), 3);
    let answers = output.messages();
    assert_eq!(answers[1]["id"], Value::Null);
    assert!(answers[1]["error"]["message"].as_str().expect("text").contains("the id 1 is in use"));
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!(2), &json!(-32602)));
    sender.respond(first, &Empty {}).expect("respond");
    assert!(matches!(receiver.receive(), Ok(Some(Incoming::Request(id, Request::Exec(_)))) if id == first));
}

#[test]
fn too_many_requests_are_refused() {
    let mut input = format!("{HELLO}\n");
    for id in 1..=1100 {
        input.push_str(&message(&format!(r#""id":{id},"method":"status""#)));
        input.push('\n');
    }
    let (mut receiver, sender, output) = open(input.as_bytes());
    greet(&mut receiver, &sender);
    let mut accepted = 0;
    while let Ok(Some(_)) = receiver.receive() {
        accepted += 1;
    }
    assert_eq!(accepted, 1024);
    assert_eq!(output.messages()[1]["error"]["code"], ErrorCode::Busy.number());
}

#[test]
fn questions_notifications_and_replies() {
    let input = format!(
        "{HELLO}\n{}\n{}\n{}\n",
        message(r#""method":"cancel","params":{"id":4}"#),
        message(r#""id":0,"result":{"choice":1}"#),
        message(r#""id":1,"result":{"choice":"refuse","cause":"timeout"}"#)
    );
    let (mut receiver, sender, output) = open(input.as_bytes());
    greet(&mut receiver, &sender);
    let ask: AskParams =
        serde_json::from_value(json!({"askId": 3, "title": "t", "subject": "s", "asker": "a",
        "context": "c", "sensitive": false, "reason": "r", "policy": "p", "rule": "u", "options": []}))
        .expect("ask");
    assert_eq!(u64::from(sender.ask(&ask).expect("ask")), 0);
    assert_eq!(u64::from(sender.ask(&ask).expect("ask")), 1);
    let notice = EventNotification::Notice { level: NoticeLevel::Info, text: "x".to_owned() };
    sender.notify(&HostNotification::Event(notice)).expect("notify");
    let sent = output.messages();
    assert_eq!(
        (&sent[1]["method"], &sent[1]["id"], &sent[1]["params"]["askId"]),
        (&json!("ask"), &json!(0), &json!(3))
    );
    assert!(sent[1]["params"].get("quote").is_none());
    assert_eq!(
        sent[3],
        json!({"jsonrpc": "2.0", "method": "event", "params": {"kind": "notice", "level": "info", "text": "x"}})
    );
    let Ok(Some(Incoming::Notification(ClientNotification::Cancel(cancel)))) = receiver.receive() else {
        panic!("cancel")
    };
    assert_eq!(Some(cancel.id), RequestId::new(4));
    let Ok(Some(Incoming::Reply(Reply { outcome: Ok(answer), .. }))) = receiver.receive() else {
        panic!("reply")
    };
    assert_eq!(answer.choice, AskChoice::Option(1));
    let Ok(Some(Incoming::Reply(Reply { outcome: Ok(answer), .. }))) = receiver.receive() else {
        panic!("reply")
    };
    assert!(matches!(answer.choice, AskChoice::Refuse(_)));
}

/// What the pi extension sends, recorded from a session of pi 1.5.2.
#[test]
fn everything_the_pi_extension_sends_is_accepted() {
    let recorded = include_str!("fixtures/pi_session.jsonl");
    let (mut receiver, sender, output) = open(recorded.as_bytes());
    let mut methods = std::collections::BTreeSet::new();
    while let Some(incoming) = receiver.receive().expect("receive") {
        let variant = match incoming {
            Incoming::Request(id, request) => {
                sender.respond(id, &Empty {}).expect("respond");
                format!("{request:?}")
            }
            Incoming::Notification(notification) => format!("{notification:?}"),
            Incoming::Reply(reply) => format!("{reply:?}"),
        };
        methods.insert(variant.split(['(', ' ']).next().unwrap_or_default().to_owned());
    }
    let refused: Vec<Value> =
        output.messages().into_iter().filter(|answer| answer.get("error").is_some()).collect();
    assert_eq!(refused, Vec::<Value>::new());
    assert_eq!(methods.len(), 12, "{methods:?}");
}

#[test]
fn a_long_message_is_refused_and_the_next_one_taken() {
    let answer = refusal(&vec![b'x'; portcullis_rpc::MAX_MESSAGE_BYTES + 1]);
    assert!(answer["error"]["message"].as_str().expect("text").contains("longer than 16777216"));
}

#[test]
fn input_that_ends_inside_a_message_is_an_error() {
    let (mut receiver, _sender, _output) = open(HELLO.as_bytes());
    assert!(matches!(receiver.receive(), Err(RpcError::Truncated)));
}

proptest! {
    #[test]
    fn arbitrary_input_gets_one_line_of_answer_for_each_line_and_never_a_request(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..300)
    ) {
        let (mut receiver, _sender, output) = open(&bytes);
        while let Ok(Some(incoming)) = receiver.receive() {
            prop_assert!(!matches!(incoming, Incoming::Request(..)));
        }
        let newlines = bytes.split(|byte| *byte == b'\n').count() - 1;
        prop_assert_eq!(output.messages().len(), newlines);
    }

    #[test]
    fn a_message_with_one_byte_changed_never_panics(at in 0..HELLO.len(), byte in any::<u8>()) {
        let mut line = HELLO.as_bytes().to_vec();
        line[at] = byte;
        line.push(b'\n');
        let (mut receiver, _sender, _output) = open(&line);
        while let Ok(Some(_)) = receiver.receive() {}
    }
}
