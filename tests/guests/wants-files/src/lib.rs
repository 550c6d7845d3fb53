//! Tries to reach files, environment, arguments and clocks through WASI. It denies with what it reached, and allows if
//! it reached nothing.

use std::time::{Duration, Instant, SystemTime};

use portcullis_sdk::{ActionKinds, ConfigError, Context, Descriptor, Evaluation, Never, Policy, Request};

struct WantsFiles;

impl Policy for WantsFiles {
    type Config = Never;

    fn describe() -> Descriptor {
        Descriptor::new("test:wants-files", "0.1.0", "Looks for ambient authority")
            .handles(ActionKinds::all())
            .rule("wasi.nothing", "nothing was within reach")
            .rule("wasi.something", "something was within reach")
    }

    fn configure(_: Never) -> Result<Self, Vec<ConfigError>> {
        Ok(Self)
    }

    fn evaluate(&self, _request: &Request, _context: &Context) -> Evaluation {
        let found = loot();
        if found.is_empty() {
            Evaluation::allow("wasi.nothing", "nothing was within reach")
        } else {
            Evaluation::deny("wasi.something", found.join(", "))
        }
    }
}

fn loot() -> Vec<String> {
    let mut found = Vec::new();
    for path in ["/etc/passwd", "/proc/self/environ", ".", "../../etc/passwd", "/"] {
        if std::fs::metadata(path).is_ok() || std::fs::read(path).is_ok() || std::fs::read_dir(path).is_ok() {
            found.push(format!("read {path}"));
        }
    }
    for path in ["/tmp/portcullis-escape", "portcullis-escape"] {
        if std::fs::write(path, "out").is_ok() {
            found.push(format!("wrote {path}"));
        }
    }
    found.extend(std::env::vars().map(|(name, _)| format!("variable {name}")));
    found.extend(std::env::args().map(|argument| format!("argument {argument}")));
    let started = Instant::now();
    let told = SystemTime::now();
    let mut sum = 0_u64;
    for step in 0..2_000_000 {
        sum = std::hint::black_box(sum + step);
    }
    if started.elapsed() > Duration::ZERO || told.elapsed().is_ok_and(|elapsed| elapsed > Duration::ZERO) {
        found.push("a clock that moves".into());
    }
    found
}

portcullis_sdk::export_policy!(WantsFiles);
