//! Tests of the WASI stubs.

use portcullis_decision::{Policy, PolicyError};
use portcullis_policy_runtime::{CachePlace, Compiler, Limits, LogLevel, Runtime};

use crate::hand_made::HandMade;
use crate::request::{context, read};

/// The parts of WASI 0.2 that these tests call.
const PACKAGES: &str = "
package wasi:io@0.2.3;
interface error { resource error { to-debug-string: func() -> string; } }
interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource input-stream { read: func(len: u64) -> result<list<u8>, stream-error>; }
    resource output-stream {
        check-write: func() -> result<u64, stream-error>;
        blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
    }
}
---
package wasi:cli@0.2.3;
interface environment {
    get-environment: func() -> list<tuple<string, string>>;
    get-arguments: func() -> list<string>;
}
interface exit { exit: func(status: result); }
interface stderr { use wasi:io/streams@0.2.3.{output-stream}; get-stderr: func() -> output-stream; }
---
package wasi:clocks@0.2.3;
interface monotonic-clock { now: func() -> u64; }
interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
---
package wasi:random@0.2.3;
interface random { get-random-u64: func() -> u64; get-random-bytes: func(len: u64) -> list<u8>; }
---
package wasi:sockets@0.2.3;
interface network { enum error-code { unknown } }
interface instance-network { instance-network: func() -> u32; }
";

fn guest(instructions: &str) -> HandMade {
    HandMade::evaluate(instructions).packages(PACKAGES)
}

fn run(guest: HandMade) -> (Result<String, PolicyError>, Vec<String>) {
    let runtime = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).unwrap();
    let policy = runtime.load("guest", &guest.build(), "{}").unwrap();
    let answer = policy.evaluate(&read("/srv/app/a"), &context()).map(|answer| answer.cause.rule);
    let warnings = policy.take_log().into_iter().filter(|line| line.level == LogLevel::Warn);
    (answer, warnings.map(|line| line.message).collect())
}

#[test]
fn environment_and_arguments_are_empty() {
    let guest = guest(
        "(call $environment (i32.const 200)) (if (i32.load (i32.const 204)) (then (unreachable)))
         (call $arguments (i32.const 200)) (if (i32.load (i32.const 204)) (then (unreachable)))",
    )
    .imports(
        "import wasi:cli/environment@0.2.3;",
        r#"(import "wasi:cli/environment@0.2.3" "get-environment" (func $environment (param i32)))
           (import "wasi:cli/environment@0.2.3" "get-arguments" (func $arguments (param i32)))"#,
    );
    assert_eq!(run(guest).0.as_deref(), Ok("test.rule"));
}

#[test]
fn clocks_stand_still_and_dice_are_loaded() {
    let random = |expected: &str| {
        guest(&format!(
            "(if (i64.ne (call $now) (i64.const 0)) (then (unreachable)))
             (call $date (i32.const 200)) (if (i64.ne (i64.load (i32.const 200)) (i64.const 0)) (then (unreachable)))
             (drop (call $random))
             (if (i64.ne (call $random) (i64.const {expected})) (then (unreachable)))
             (call $bytes (i64.const 5) (i32.const 200))
             (if (i32.ne (i32.load (i32.const 204)) (i32.const 5)) (then (unreachable)))"
        ))
        .imports(
            "import wasi:clocks/monotonic-clock@0.2.3; import wasi:clocks/wall-clock@0.2.3; import wasi:random/random@0.2.3;",
            r#"(import "wasi:clocks/monotonic-clock@0.2.3" "now" (func $now (result i64)))
               (import "wasi:clocks/wall-clock@0.2.3" "now" (func $date (param i32)))
               (import "wasi:random/random@0.2.3" "get-random-u64" (func $random (result i64)))
               (import "wasi:random/random@0.2.3" "get-random-bytes" (func $bytes (param i64 i32)))"#,
        )
    };
    // The second number of splitmix64 from the runtime's seed: the same on every machine.
    let second = {
        let mixed = 0x706f_7274_6375_6c6c_u64.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2));
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).cast_signed()
    };
    assert_eq!(run(random(&second.to_string())).0.as_deref(), Ok("test.rule"));
    assert!(run(random("1")).0.is_err(), "control");
}

#[test]
fn random_bytes_are_bounded() {
    let guest = guest("(call $bytes (i64.const 0x7fffffffffff) (i32.const 200))").imports(
        "import wasi:random/random@0.2.3;",
        r#"(import "wasi:random/random@0.2.3" "get-random-bytes" (func $bytes (param i64 i32)))"#,
    );
    assert!(run(guest).0.unwrap_err().to_string().contains("random bytes"));
}

const STDERR: &str = r#"
    (import "wasi:cli/stderr@0.2.3" "get-stderr" (func $stderr (result i32)))
    (import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush"
        (func $write (param i32 i32 i32 i32)))
    (import "wasi:io/streams@0.2.3" "[resource-drop]output-stream" (func $close (param i32)))"#;
const STDERR_WORLD: &str = "import wasi:cli/stderr@0.2.3; import wasi:io/streams@0.2.3;";

#[test]
fn standard_error_is_logged() {
    let guest = guest(
        "(local $stream i32) (local.set $stream (call $stderr))
         (call $write (local.get $stream) (i32.const 4096) (i32.const 14) (i32.const 200))
         (if (i32.load8_u (i32.const 200)) (then (unreachable)))
         (call $close (local.get $stream))",
    )
    .imports(STDERR_WORLD, STDERR);
    let (answer, log) = run(guest);
    assert_eq!(answer.as_deref(), Ok("test.rule"));
    assert_eq!(log, ["test:hand-made"]);
}

#[test]
fn a_handle_kept_by_configure_goes_on_working() {
    let guest = guest(
        "(call $write (i32.load (i32.const 8)) (i32.const 4096) (i32.const 4) (i32.const 200))
         (if (i32.load8_u (i32.const 200)) (then (unreachable)))",
    )
    .configure("(i32.store (i32.const 8) (call $stderr))")
    .imports(STDERR_WORLD, STDERR);
    let (answer, log) = run(guest);
    assert_eq!(answer.as_deref(), Ok("test.rule"));
    assert_eq!(log, ["test"]);
}

#[test]
fn exit_and_the_unknown_are_traps() {
    let exit = guest("(call $exit (i32.const 0))").imports(
        "import wasi:cli/exit@0.2.3;",
        r#"(import "wasi:cli/exit@0.2.3" "exit" (func $exit (param i32)))"#,
    );
    let error = run(exit).0.unwrap_err();
    assert!(
        matches!(&error, PolicyError::Trap { detail } if detail.contains("`wasi:cli/exit#exit`")),
        "{error}"
    );
    let socket = guest("(drop (call $network))").imports(
        "import wasi:sockets/instance-network@0.2.3;",
        r#"(import "wasi:sockets/instance-network@0.2.3" "instance-network" (func $network (result i32)))"#,
    );
    let error = run(socket).0.unwrap_err();
    assert!(error.to_string().contains("`wasi:sockets/instance-network#instance-network`"), "{error}");
}
