//! Answers with malformed bytes. Component model bindings cannot produce them, so the evaluator's exports are written
//! by hand, after the canonical ABI. The configuration selects the kind: `{ "kind": "pointer" }` and so on.

wit_bindgen::generate!({ path: "../../../wit", world: "pure-policy" });

use std::cell::RefCell;

use exports::portcullis::policy::lifecycle;
use portcullis::policy::types::{ActionKinds, ConfigError};

thread_local!(static KIND: RefCell<String> = const { RefCell::new(String::new()) });

struct Component;

impl lifecycle::Guest for Component {
    fn describe() -> lifecycle::Descriptor {
        lifecycle::Descriptor {
            id: "test:garbage".into(),
            version: "0.1.0".into(),
            title: "Answers with garbage".into(),
            handles: ActionKinds::all(),
            rules: Vec::new(),
            config_schema: String::new(),
        }
    }

    fn configure(config: String) -> Result<(), Vec<ConfigError>> {
        KIND.set(config);
        Ok(())
    }
}

exports::portcullis::policy::lifecycle::__export_portcullis_policy_lifecycle_0_1_0_cabi!(
    Component with_types_in exports::portcullis::policy::lifecycle
);

/// The size of an `evaluation` in memory, and the offsets of its parts.
const SIZE: usize = 76;
const RULE: usize = 40;
const REASON: usize = 48;
const SEVERITY: usize = 64;

/// Takes the arguments as one pointer, which it never follows, and returns a pointer to an `evaluation`: `allow`, apart
/// from the garbage.
#[unsafe(export_name = "portcullis:policy/evaluator@0.1.0#evaluate")]
extern "C" fn evaluate(_arguments: usize) -> usize {
    let mut answer = vec![0_u8; SIZE];
    // The case `allow`, without obligations.
    answer[0] = 1;
    let kind = KIND.with_borrow(Clone::clone);
    let is = |name: &str| kind.contains(&format!("\"{name}\""));
    if is("discriminant") {
        answer[0] = 200;
    } else if is("severity") {
        answer[SEVERITY] = 99;
    } else if is("utf8") {
        let bytes: &[u8] = &[0xff, 0xfe, 0xc0, 0x80];
        text(&mut answer, REASON, bytes.as_ptr().addr(), bytes.len());
    } else if is("text-outside") {
        text(&mut answer, RULE, 0xffff_fff0, 8);
    } else if is("length") {
        text(&mut answer, RULE, 16, 0x7fff_ffff);
    } else if is("pointer") {
        return 0xffff_fff0;
    } else if is("unaligned") {
        return answer.leak().as_ptr().addr() | 1;
    } else {
        // An unknown kind must not result in `allow`.
        std::process::abort();
    }
    answer.leak().as_ptr().addr()
}

fn text(answer: &mut [u8], at: usize, pointer: usize, length: usize) {
    answer[at..at + 4].copy_from_slice(&(pointer as u32).to_le_bytes());
    answer[at + 4..at + 8].copy_from_slice(&(length as u32).to_le_bytes());
}
