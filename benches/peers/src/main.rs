//! What one decision costs here, and in the engines that others use. Every contestant has the same rules, and gives the
//! same answers before anything is measured. `cargo run --release` in this directory.

mod cedar;
mod node;
mod ours;
mod rego;

use portcullis_benches::{Contestant, Race};

/// A question: may this path be read, or written?
#[derive(Debug, Clone, Copy)]
struct Question<'a> {
    path: &'a str,
    write: bool,
}

/// Directories that may be read, and directories that may be read and written.
#[derive(Debug, Clone)]
struct Rules {
    read: Vec<String>,
    write: Vec<String>,
}

/// Somebody who answers.
trait Engine {
    /// Whether it is allowed without a question to the user.
    fn allows(&mut self, question: Question<'_>) -> bool;
}

/// What is measured; the last rules are those that answer.
const MEASURED: Question<'_> = Question { path: "/srv/app/src/main.rs", write: false };

/// Answered alike by all, or nothing is measured.
const COMPARED: [&str; 10] = [
    "/srv/app/src/main.rs",
    "/srv/app",
    "/srv/app/a/b/c/d/e",
    "/srv/application/x",
    "/srv/read/3/x",
    "/srv/read/30/x",
    "/srv/write/7/x/y",
    "/srv/write",
    "/etc/passwd",
    "/home/u/.ssh/id_ed25519",
];

fn main() {
    for pairs in [10, 50] {
        race(&rules(pairs));
    }
}

/// Half of the rules are about reading, half about writing.
fn rules(pairs: usize) -> Rules {
    let places = |kind: &str| {
        let others = (1..pairs).map(|number| format!("/srv/{kind}/{number}"));
        others.chain(["/srv/app".to_owned()]).collect()
    };
    Rules { read: places("read"), write: places("write") }
}

fn race(rules: &Rules) {
    let policy = ours::load(rules);
    let mut native = ours::Native::new(rules);
    let mut copy = ours::Copy::new(&policy);
    let mut fresh = ours::Fresh::new(&policy);
    let mut cedar = cedar::Cedar::new(rules);
    let mut rego = rego::Rego::new(rules);
    let mut node = node::Node::start(rules);
    {
        let engines: [(&str, &mut dyn Engine); 6] = [
            ("native", &mut native),
            ("copy", &mut copy),
            ("fresh", &mut fresh),
            ("cedar", &mut cedar),
            ("rego", &mut rego),
            ("node", &mut node),
        ];
        compare(engines);
    }
    let race = Race::new(&format!("decision, {} rules", rules.read.len() + rules.write.len()));
    let outcome = race.run(vec![
        Contestant::new("native Rust", 2_000, || assert!(native.allows(MEASURED))),
        Contestant::new("instance used again", 1_000, || assert!(copy.allows(MEASURED))),
        Contestant::new("fresh copy (the default)", 500, || assert!(fresh.allows(MEASURED))),
        Contestant::new("cedar-policy", 500, || assert!(cedar.allows(MEASURED))),
        Contestant::new("regorus", 100, || assert!(rego.allows(MEASURED))),
        Contestant::in_one("Node, in its own process", 2_000, |calls| node.repeat(MEASURED, calls)),
    ]);
    println!("{outcome}");
}

fn compare(engines: [(&str, &mut dyn Engine); 6]) {
    let mut known: Option<(&str, Vec<bool>)> = None;
    for (name, engine) in engines {
        let questions = COMPARED.iter().flat_map(|path| [false, true].map(|write| Question { path, write }));
        let answers: Vec<bool> = questions.map(|question| engine.allows(question)).collect();
        match &known {
            None => known = Some((name, answers)),
            Some((first, expected)) => {
                assert_eq!(&answers, expected, "{name} answers otherwise than {first}");
            }
        }
    }
    let allowed = known.map(|(_, answers)| answers.iter().filter(|answer| **answer).count());
    println!("equal answers to {} questions, {} of them yes", COMPARED.len() * 2, allowed.unwrap_or_default());
}
