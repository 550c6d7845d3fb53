//! `policy watch`: builds, tests and lints a policy after each edit.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::{complain, say};
use portcullis_command_line::args::policy::{Build, Lint, Test, Watch};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Reader};
use portcullis_policy_tools::{Component, Edits};
use serde_json::json;

pub(super) fn run(args: &Watch) -> exit::Outcome {
    let folder = args.folder.display();
    anyhow::ensure!(
        args.folder.is_dir(),
        "`{folder}` is not a folder; `policy watch` takes the folder of a policy"
    );
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    loop {
        // Taken before the round, so that edits during it start the next round.
        let mut edits = Edits::since_now(&args.folder);
        if let Err(error) = round(args) {
            if args.json {
                page.json(&json!({ "error": format!("{error:#}") }));
            } else {
                complain(&error);
            }
        }
        if !args.json {
            say("waiting for edits …");
        }
        if page.print()? == Reader::Gone {
            return Ok(Exit::Done);
        }
        edits.wait();
    }
}

/// Builds the policy if its source has changed, runs its cases, and lints it.
fn round(args: &Watch) -> anyhow::Result<()> {
    let Watch { folder, config, json } = args;
    // A component that is up to date can be opened.
    if Component::open(folder).is_err() {
        super::build::run(&Build { folder: folder.clone(), output: None, json: *json })?;
    }
    super::test::run(&Test {
        policy: folder.clone(),
        cases: None,
        from_log: None,
        config: "{}".to_owned(),
        junit: None,
        verbose: false,
        json: *json,
    })?;
    let (policy, config) = (folder.clone(), config.clone());
    super::lint::run(&Lint { policy, config, strict: false, json: *json })?;
    Ok(())
}
