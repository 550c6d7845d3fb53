//! Components that are rejected before they run, and the messages of these errors.

use portcullis_policy_runtime::{CachePlace, Compiler, Limits, LoadError, Runtime};

use crate::hand_made::HandMade;

fn runtime() -> Runtime {
    Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap()
}

fn refusal(component: &[u8]) -> LoadError {
    runtime().load("guest", component, "{}").unwrap_err()
}

#[test]
fn not_a_component() {
    assert!(matches!(refusal(b""), LoadError::NotWebAssembly));
    assert!(matches!(refusal(b"#!/bin/sh\necho hello"), LoadError::NotWebAssembly));
    let module = wat::parse_str("(module)").unwrap();
    assert!(matches!(refusal(&module), LoadError::CoreModule));
    let mut broken = HandMade::evaluate("").build();
    let middle = broken.len() / 2;
    broken[middle..].fill(0xff);
    assert!(matches!(refusal(&broken), LoadError::Compile { .. }));
}

#[test]
fn too_large() {
    let mut bytes = HandMade::evaluate("").build();
    bytes.resize((64 << 20) + 1, 0);
    assert!(matches!(refusal(&bytes), LoadError::Size { .. }));
}

#[test]
fn another_track() {
    let error = refusal(&HandMade::evaluate("").track("0.3.0").build());
    assert!(error.to_string().contains("contract 0.3; this host speaks 0.1 to 0.2; update"), "{error}");
    // A later version of the same track, with the same types.
    assert!(runtime().load("guest", &HandMade::evaluate("").track("0.1.4").build(), "{}").is_ok());
}

#[test]
fn no_policy() {
    let empty = wat::parse_str("(component)").unwrap();
    let error = refusal(&empty);
    assert!(error.to_string().contains("`portcullis:policy/lifecycle`; it exports nothing"), "{error}");
}

#[test]
fn imports_that_are_not_given() {
    for (world, function, said) in [
        (
            "import portcullis:policy/state@0.1.0;",
            r#"(import "portcullis:policy/state@0.1.0" "delete" (func (param i32 i32)))"#,
            "settings grant them",
        ),
        (
            "import portcullis:policy/workspace-view@0.1.0;",
            r#"(import "portcullis:policy/workspace-view@0.1.0" "exists" (func (param i32 i32) (result i32)))"#,
            "`portcullis:policy/workspace-view@0.1.0`",
        ),
        ("import run: func(command: string);", r#"(import "$root" "run" (func (param i32 i32)))"#, "`run`"),
    ] {
        let error = refusal(&HandMade::evaluate("").imports(world, function).build());
        assert!(matches!(error, LoadError::Imports { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn types_that_do_not_fit() {
    // The right name with another type.
    let component = wat::parse_str(
        r#"(component
            (core module $m (func (export "f") (result i32) (i32.const 0)))
            (core instance $i (instantiate $m))
            (func $describe (result u32) (canon lift (core func $i "f")))
            (instance $lifecycle (export "describe" (func $describe)) (export "configure" (func $describe)))
            (instance $evaluator (export "evaluate" (func $describe)))
            (export "portcullis:policy/lifecycle@0.1.0" (instance $lifecycle))
            (export "portcullis:policy/evaluator@0.1.0" (instance $evaluator)))"#,
    )
    .unwrap();
    let error = refusal(&component);
    assert!(matches!(error, LoadError::Contract { .. }), "{error}");
}

#[test]
fn configurations() {
    let component = HandMade::evaluate("").build();
    for (configuration, said) in [("", "not JSON"), ("[]", "not a JSON object"), ("{", "not JSON")] {
        let error = runtime().load("guest", &component, configuration).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let large = format!("{{\"a\": \"{}\"}}", "a".repeat(1 << 20));
    assert!(runtime().load("guest", &component, &large).is_err());
}

#[test]
fn describing_runs_no_configuration() {
    let component = HandMade::evaluate("").configure("(unreachable)").build();
    let description = runtime().describe(&component).unwrap();
    assert_eq!((description.id.as_str(), description.title.as_str()), ("test:hand-made", "Hand-made"));
    assert!(description.handles.file && !description.handles.command);
    assert!(runtime().surface(&component).unwrap().exports.len() == 2);
}
