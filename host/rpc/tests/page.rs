//! The messages that `docs/protocol.md` shows.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a failed test panics")]

use portcullis_rpc::{AskParams, AskResponse, HelloParams, HelloResponse, ReserveParams, ReserveResponse};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../docs/protocol.md");

/// What `{…}` stands for: the status that the section `status` describes.
fn status() -> Value {
    json!({
        "state": "enabled", "domains": 0, "writePaths": 1, "summary": "", "waiting": 0, "reservations": false,
        "escalation": false, "contained": false, "brief": "", "warnings": [],
    })
}

/// Returns the messages of all blocks, one block after the other.
fn messages() -> Vec<Vec<Value>> {
    let blocks = PAGE.split("```json\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    blocks
        .map(|block| {
            let plain = block.replace(['→', '←'], "").replace("{…}", &status().to_string());
            serde_json::Deserializer::from_str(&plain)
                .into_iter()
                .collect::<Result<_, _>>()
                .unwrap_or_else(|error| panic!("{error}: {block}"))
        })
        .collect()
}

#[track_caller]
fn is<T: DeserializeOwned>(message: &Value, place: &str) {
    let part = message.get(place).unwrap_or_else(|| panic!("no `{place}` in {message}"));
    if let Err(error) = T::deserialize(part) {
        panic!("{error}: {part}");
    }
}

#[test]
fn each_message_has_the_fields_of_its_type() {
    let all = messages();
    let mut methods = Vec::new();
    for pair in &all {
        let [request, reply] = pair.as_slice() else { panic!("a request and its reply: {pair:?}") };
        assert_eq!(request["jsonrpc"], "2.0");
        assert_eq!(request["id"], reply["id"], "{request}");
        let method = request["method"].as_str().unwrap();
        match method {
            "hello" => {
                is::<HelloParams>(request, "params");
                is::<HelloResponse>(reply, "result");
            }
            "reserve" => {
                is::<ReserveParams>(request, "params");
                is::<ReserveResponse>(reply, "result");
            }
            "ask" => {
                is::<AskParams>(request, "params");
                is::<AskResponse>(reply, "result");
            }
            other => panic!("no type is known for `{other}`"),
        }
        methods.push(method);
    }
    assert_eq!(methods, ["hello", "reserve", "ask"]);
}
