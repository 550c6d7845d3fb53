//! The cost of reading a small file through the gate, compared with the standard library. `cargo bench -p
//! portcullis-benches --bench files`

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark ends where it cannot measure")]

use std::hint::black_box;
use std::path::Path;

use portcullis_benches::{Contestant, Race};
use portcullis_decision::context::Workspace;
use portcullis_decision::request::{
    Action, FileAccess, FileFacts, FileOperation, Origin, PathKind, PathRef, Zone,
};
use portcullis_decision::{Base, Chain, Context, Permit, Request, RuleSet};
use portcullis_file_gate::{Gate, Limits, Purpose, Views};

/// Calls in one round.
const CALLS: u32 = 2_000;
/// Length of the file, that of a typical source file.
const LENGTH: usize = 2_000;

fn main() {
    let scratch = tempfile::tempdir_in("/var/tmp").expect("a directory to work in");
    let project = scratch.path().canonicalize().expect("the directory");
    let file = project.join("home/project/src/file.txt");
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
    std::fs::write(&file, "x".repeat(LENGTH)).expect("a file");
    let gate = Gate::new(Views::Host).expect("a gate");
    let rules = Rules::new(&project);
    let located = || gate.locate(&file, Purpose::Existing).expect("located");
    let text = located().canonical_text().to_owned();
    let race = Race::new("reading a file of 2,000 bytes");
    let outcome = race.run(vec![
        Contestant::new("std::fs::read", CALLS, || drop(black_box(std::fs::read(&file)))),
        Contestant::new("locating", CALLS, || drop(black_box(located()))),
        Contestant::new("deciding by rules", CALLS, || drop(black_box(rules.permit(&text)))),
        Contestant::new("locating, deciding and reading", CALLS, || {
            let permit = rules.permit(&text);
            drop(black_box(gate.read(located(), permit, Limits::default()).expect("read")));
        }),
    ]);
    println!("{outcome}");
    for name in ["locating", "deciding by rules", "locating, deciding and reading"] {
        let ratio = outcome.ratio(name, "std::fs::read").expect("both took part");
        println!("{name}: {:.2}x std::fs::read (calm {:.2}x)", ratio.median, ratio.calm);
    }
}

/// A policy chain without opinions and rules that allow the workspace.
struct Rules {
    chain: Chain,
    rules: RuleSet,
    context: Context,
}

impl Rules {
    fn new(project: &Path) -> Self {
        let base = Base {
            workspace: vec![project.to_owned()],
            temp: "/tmp".into(),
            closed: Vec::new(),
            ..Base::default()
        };
        let roots = vec![project.display().to_string()];
        let context =
            Context { workspace: Workspace { roots, ..Workspace::default() }, ..Context::default() };
        Self { chain: Chain::default(), rules: RuleSet::compile(Vec::new(), base, &[]), context }
    }

    fn permit(&self, canonical: &str) -> Permit {
        let path =
            PathRef { relative: String::new(), ..PathRef::plain(canonical, Zone::Workspace, PathKind::File) };
        let access = FileAccess { path, operation: FileOperation::Read, facts: FileFacts::default() };
        let request = Request {
            id: "r1".to_owned(),
            parent: None,
            origin: Origin::Agent,
            action: Action::File(access),
            facts: Vec::new(),
        };
        let decision = self.chain.decide(&request, &self.context, &self.rules, &[]);
        decision.permit(&request).expect("allowed")
    }
}
