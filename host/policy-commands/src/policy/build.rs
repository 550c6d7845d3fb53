//! `policy build`: builds a component and embeds its pack.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::policy::Build;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, cell};
use portcullis_packs::digest;
use portcullis_policy_tools::build;
use serde_json::json;

pub(super) fn run(args: &Build) -> exit::Outcome {
    let built = build(&args.folder, args.output.as_deref())?;
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    let digest = format!("sha256:{}", digest(&built.bytes));
    if args.json {
        page.json(&json!({ "component": built.output, "digest": digest, "bytes": built.bytes.len() }));
    } else {
        let size = format!("{} bytes", built.bytes.len());
        page.row("", &[cell(&built.output.display().to_string()), cell(&size), cell(&digest)], &[]);
    }
    page.print()?;
    Ok(Exit::Done)
}
