//! Compares the gate with `std::fs`: measures how much longer it takes to read or write a small file.
//!
//! `cargo run --release --package portcullis-file-gate --example throughput [directory]`
//!
//! Each round measures both in turn; the result is the median of the rounds' ratios.
#![cfg_attr(target_os = "linux", expect(clippy::print_stdout, reason = "it prints figures"))]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args_os().nth(1).map_or_else(|| "/var/tmp".into(), std::path::PathBuf::from);
    let file = std::fs::canonicalize(&directory)?.join(format!(".throughput-{}", std::process::id()));
    std::fs::write(&file, "x".repeat(linux::SIZE))?;
    let result = linux::measure(&file);
    std::fs::remove_file(&file)?;
    result
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use portcullis_decision::context::{AgentInfo, Machine, Workspace};
    use portcullis_decision::request::{Action, Content, FileAccess, FileOperation, Origin, PathRef, Zone};
    use portcullis_decision::{Base, Chain, Context, Decision, Permit, Request, RuleSet};
    use portcullis_file_gate::{Gate, Limits, Purpose, Views, WriteOptions};

    /// The size of the file in bytes.
    pub(crate) const SIZE: usize = 2_000;
    const ROUNDS: u32 = 22;
    const READS: u32 = 1_000;
    const WRITES: u32 = 100;

    pub(crate) fn measure(file: &Path) -> Result<(), Box<dyn Error>> {
        let gate = Gate::new(Views::Host)?;
        let reading = allowed(&gate, file, FileOperation::Read)?;
        let writing = allowed(&gate, file, FileOperation::Write(Content::Unknown))?;
        let content = fs::read(file)?;
        compare(
            "read",
            READS,
            || {
                assert_eq!(fs::read(file)?.len(), SIZE);
                Ok(())
            },
            || {
                let located = gate.locate(file, Purpose::Existing)?;
                let content = gate.read(located, permit(&reading)?, Limits::default())?;
                assert_eq!(content.bytes.len(), SIZE);
                Ok(())
            },
        )?;
        compare(
            "write",
            WRITES,
            || Ok(fs::write(file, &content)?),
            || {
                let located = gate.locate(file, Purpose::ForWriting)?;
                gate.write(located, permit(&writing)?, &content, WriteOptions::default())?;
                Ok(())
            },
        )
    }

    type Act<'a> = dyn Fn() -> Result<(), Box<dyn Error>> + 'a;

    fn compare(
        what: &str,
        times: u32,
        plain: impl Fn() -> Result<(), Box<dyn Error>>,
        gated: impl Fn() -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            // The order alternates, so that neither always comes first.
            let (one, other): (&Act<'_>, &Act<'_>) =
                if round % 2 == 0 { (&plain, &gated) } else { (&gated, &plain) };
            let (one, other) = (time(times, one)?, time(times, other)?);
            let (plain, gated) = if round % 2 == 0 { (one, other) } else { (other, one) };
            // The first two rounds warm up.
            if round >= 2 {
                rounds.push((gated.as_secs_f64() / plain.as_secs_f64(), plain, gated));
            }
        }
        rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((ratio, plain, gated)) = rounds.get(rounds.len() / 2) {
            println!("{what}: {ratio:.2} times std::fs ({plain:.1?} and {gated:.1?} each)");
        }
        Ok(())
    }

    fn time(times: u32, act: &Act<'_>) -> Result<Duration, Box<dyn Error>> {
        let start = Instant::now();
        for _ in 0..times {
            act()?;
        }
        Ok(start.elapsed() / times)
    }

    fn permit((decision, request): &(Decision, Request)) -> Result<Permit, Box<dyn Error>> {
        Ok(decision.permit(request).ok_or("not allowed")?)
    }

    /// Makes the decision once; its cost is not part of the comparison.
    fn allowed(
        gate: &Gate,
        file: &Path,
        operation: FileOperation,
    ) -> Result<(Decision, Request), Box<dyn Error>> {
        let located = gate.locate(file, Purpose::Existing)?;
        let text = located.canonical_text().to_owned();
        let path = PathRef {
            given: text.clone(),
            absolute: text.clone(),
            canonical: text.clone(),
            zone: Zone::Workspace,
            relative: text,
            kind: located.kind(),
        };
        let action = Action::File(FileAccess { path, operation, facts: located.facts() });
        let request =
            Request { id: "1".into(), parent: None, origin: Origin::Agent, action, attributes: vec![] };
        let context = Context {
            session_id: "s".into(),
            agent: AgentInfo::default(),
            workspace: Workspace::default(),
            machine: Machine::default(),
            interactive: false,
            now: 0,
            grants: vec![],
            explain: false,
            attributes: vec![],
        };
        let base = Base { workspace: vec![file.to_owned()], ..Base::default() };
        let rules = RuleSet::compile(Vec::new(), base, &[]);
        Ok((Chain::default().decide(&request, &context, &rules, &[]), request))
    }
}
