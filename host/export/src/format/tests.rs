use serde_json::{Value, json};

use super::*;
use crate::event::{Decider, Kind};

fn decider() -> Decider {
    Decider {
        action: "command".to_owned(),
        effect: "deny".to_owned(),
        policy: "guard".to_owned(),
        rule: "guard.rm".to_owned(),
        setting: String::new(),
        answered_by: "user".to_owned(),
        reason: "it removes\neverything".to_owned(),
    }
}

fn decision() -> Event {
    Event {
        id: "0a1b:7".to_owned(),
        kind: Kind::Decision,
        at_ms: 1_735_689_600_001,
        session: "0a1b".to_owned(),
        summary: "run rm -rf /\nMESSAGE=forged".to_owned(),
        decider: decider(),
        repeated: true,
        record: json!({ "sequence": 7 }),
        position: None,
    }
}

fn outcome() -> Event {
    let kind = Kind::Outcome { decision: "0a1b:7".to_owned(), result: "exit 0".to_owned() };
    let decider = Decider { effect: "allow".to_owned(), ..decider() };
    Event { id: "0a1b:8".to_owned(), kind, repeated: false, decider, ..decision() }
}

fn body(format: Format, events: &[Event]) -> Value {
    serde_json::from_slice(&format.body(events)).unwrap()
}

#[test]
fn otlp_has_id_decider_and_record() {
    let written = body(Format::Otlp, &[decision(), outcome()]);
    let records = written.pointer("/resourceLogs/0/scopeLogs/0/logRecords").unwrap().as_array().unwrap();
    let attribute = |record: &Value, name: &str| -> Option<Value> {
        let all = record["attributes"].as_array().unwrap().iter();
        all.clone().find(|one| one["key"] == name).map(|one| one["value"].clone())
    };
    let [first, second] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(first["timeUnixNano"], "1735689600001000000");
    assert_eq!((&first["severityNumber"], &first["severityText"]), (&json!(13), &json!("WARN")));
    assert_eq!(first["eventName"], "portcullis.decision");
    assert_eq!(attribute(first, "log.record.uid"), Some(json!({ "stringValue": "0a1b:7" })));
    assert_eq!(attribute(first, "portcullis.rule"), Some(json!({ "stringValue": "guard.rm" })));
    assert_eq!(attribute(first, "portcullis.answered_by"), Some(json!({ "stringValue": "user" })));
    assert_eq!(attribute(first, "portcullis.repeated"), Some(json!({ "boolValue": true })));
    assert_eq!(attribute(first, "portcullis.setting"), None);
    assert_eq!(attribute(second, "portcullis.decision"), Some(json!({ "stringValue": "0a1b:7" })));
    assert_eq!(attribute(second, "portcullis.policy"), Some(json!({ "stringValue": "guard" })));
    assert_eq!(attribute(second, "portcullis.repeated"), None);
}

#[test]
fn an_answer_of_otlp_tells_what_it_rejected() {
    let partial = r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too\nold"}}"#;
    assert_eq!(Format::Otlp.accepted(partial), Accepted { refused: 3, reason: "tooold".to_owned() });
    for said in
        ["", "{}", "not JSON", r#"{"partialSuccess":{}}"#, r#"{"partialSuccess":{"rejectedLogRecords":-1}}"#]
    {
        assert_eq!(Format::Otlp.accepted(said).refused, 0, "{said}");
    }
    assert_eq!(Format::Ocsf.accepted(partial), Accepted::default());
}

#[test]
fn ocsf_has_what_its_class_requires() {
    let written = body(Format::Ocsf, &[decision(), outcome()]);
    for event in written.as_array().unwrap() {
        for name in
            ["class_uid", "category_uid", "activity_id", "type_uid", "time", "severity_id", "metadata"]
        {
            assert!(!event[name].is_null(), "{name}");
        }
        for name in ["actor", "api", "src_endpoint", "action_id", "disposition_id"] {
            assert!(!event[name].is_null(), "{name}");
        }
        assert_eq!(event["type_uid"], 600_399);
    }
    assert_eq!((&written[0]["action_id"], &written[0]["severity_id"]), (&json!(2), &json!(3)));
    assert_eq!(written[0].pointer("/actor/authorizations/0/policy/uid"), Some(&json!("guard.rm")));
    assert_eq!(written[0]["unmapped"], json!({ "answered_by": "user", "repeated": true }));
    assert_eq!((&written[1]["status_id"], &written[1]["action_id"]), (&json!(1), &json!(1)));
    assert_eq!(written[1].pointer("/api/request/uid"), Some(&json!("0a1b:7")));

    let unreadable = Event::unreadable("a.jsonl#3".to_owned(), 5, "line 3 is no record".to_owned());
    let written = body(Format::Ocsf, &[unreadable]);
    assert_eq!((&written[0]["class_uid"], &written[0]["type_uid"]), (&json!(0), &json!(99)));
    assert_eq!(written[0]["unmapped"], json!({ "unreadable": "line 3 is no record" }));
}

#[test]
fn syslog_is_one_line_with_json() {
    let [message] = Format::Syslog.messages(&[decision()]).try_into().unwrap();
    let text = String::from_utf8(message).unwrap();
    assert!(!text.contains('\n'), "a line end would begin a message: {text}");
    let parts: Vec<&str> = text.splitn(8, ' ').collect();
    let [priority, time, _host, program, _process, kind, data, json] = parts.as_slice() else {
        panic!("{text}")
    };
    assert_eq!((*priority, *time), ("<108>1", "2025-01-01T00:00:00.001Z"));
    assert_eq!((*program, *kind, *data), ("portcullis", "decision", "-"));
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        (&json["id"], &json["rule"], &json["repeated"]),
        (&json!("0a1b:7"), &json!("guard.rm"), &json!(true))
    );

    let frames = String::from_utf8(Format::Syslog.frames(&[decision(), outcome()])).unwrap();
    let (length, rest) = frames.split_once(' ').unwrap();
    let (first, second) = rest.split_at(length.parse().unwrap());
    assert_eq!(first, text);
    let (length, rest) = second.split_once(' ').unwrap();
    assert_eq!(rest.len(), length.parse::<usize>().unwrap());
}

/// Parses an entry of the journal as journald does.
fn parse_entry(mut bytes: &[u8]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        match line.iter().position(|byte| *byte == b'=') {
            Some(at) => {
                fields.push((text(&line[..at]), text(&line[at + 1..])));
                bytes = rest;
            }
            None => {
                let (length, rest) = rest.split_first_chunk::<8>().unwrap();
                let (value, rest) = rest.split_at(usize::try_from(u64::from_le_bytes(*length)).unwrap());
                fields.push((text(line), text(value)));
                bytes = rest.strip_prefix(b"\n").unwrap();
            }
        }
    }
    fields
}

#[test]
fn no_text_begins_a_field_of_the_journal() {
    let [entry] = Format::Journald.messages(&[decision()]).try_into().unwrap();
    let fields = parse_entry(&entry);
    let values = |name: &str| -> Vec<&str> {
        fields.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(values("MESSAGE"), ["run rm -rf /\nMESSAGE=forged"]);
    assert_eq!(values("PRIORITY"), ["4"]);
    assert_eq!(values("PORTCULLIS_REASON"), ["it removes\neverything"]);
    assert_eq!(values("PORTCULLIS_ID"), ["0a1b:7"]);
    assert_eq!(values("PORTCULLIS_REPEATED"), ["true"]);
}
