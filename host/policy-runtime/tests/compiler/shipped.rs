//! Shipped policies compile within the limits, and the result equals that of a compilation in the host.

use portcullis_decision::Policy as _;
use portcullis_each_user::Test;
use portcullis_policy_runtime::{CachePlace, CompileLimits, Compiler, Limits, LoadError, Runtime, Start};

use crate::runtime;

pub(crate) const TESTS: &[Test] = &[
    ("shipped_policies_compile", shipped_policies_compile),
    ("answers_are_those_of_the_host", answers_are_those_of_the_host),
    ("the_cache_is_filled_from_the_process", the_cache_is_filled_from_the_process),
];

pub(crate) const SECRETS: &[u8] = include_bytes!("../../../../policies/secrets/policy.wasm");
const SHIPPED: [(&str, &[u8]); 5] = [
    ("workspace", include_bytes!("../../../../policies/workspace/policy.wasm")),
    ("guard", include_bytes!("../../../../policies/guard/policy.wasm")),
    ("git-guard", include_bytes!("../../../../policies/git-guard/policy.wasm")),
    ("secrets", SECRETS),
    ("bosun", include_bytes!("../../../../policies/bosun/policy.wasm")),
];

fn shipped_policies_compile() {
    let runtime = runtime(CompileLimits::default());
    for (name, component) in SHIPPED {
        let policy = runtime.load(name, component, "{}").expect(name);
        policy.snapshot_job().expect(name).run().expect(name);
        assert_eq!(policy.start(), Start::Snapshot, "{name}");
        assert_eq!(policy.name(), name);
    }
}

fn answers_are_those_of_the_host() {
    let here = Runtime::new(Limits::default(), &CachePlace::None, Compiler::InProcess).expect("an engine");
    let there = runtime(CompileLimits::default());
    assert_eq!(there.describe(SECRETS).expect("a description"), here.describe(SECRETS).expect("as well"));
    assert_eq!(there.surface(SECRETS).expect("a surface"), here.surface(SECRETS).expect("as well"));
    let odd = r#"{"no-such-key": 1}"#;
    let refusals = [&here, &there].map(|runtime| runtime.load("p", SECRETS, odd).expect_err("refused"));
    assert!(refusals.iter().all(|error| matches!(error, LoadError::Configuration { .. })), "{refusals:?}");
    let [one, two] = refusals.map(|error| error.to_string());
    assert_eq!(one, two);
    let empty = wat::parse_str("(component)").expect("a component");
    let refusals = [&here, &there].map(|runtime| runtime.load("p", &empty, "{}").expect_err("refused"));
    let [one, two] = refusals.map(|error| error.to_string());
    assert_eq!(one, two);
    assert!(there.load("p", SECRETS, "{}").is_ok(), "and the next one loads");
}

fn the_cache_is_filled_from_the_process() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("cache");
    let cache = CachePlace::Directory(directory.clone());
    let compiler = Compiler::Process(std::env::current_exe().expect("own path"));
    let runtime = Runtime::new(Limits::default(), &cache, compiler).expect("an engine");
    runtime.load("secrets", SECRETS, "{}").expect("it loads");
    assert_eq!(std::fs::read_dir(&directory).expect("a cache").count(), 1);
    drop(runtime);
    // A cached policy needs no compiler.
    let none = Compiler::Process("/nonexistent".into());
    let runtime = Runtime::new(Limits::default(), &cache, none).expect("an engine");
    runtime.load("secrets", SECRETS, "{}").expect("it is in the cache");
    assert!(matches!(runtime.load("guard", SHIPPED[1].1, "{}"), Err(LoadError::Compiler { .. })), "control");
}
