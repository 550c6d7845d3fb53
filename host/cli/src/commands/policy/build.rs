//! `policy build`: builds a component and embeds its pack.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_packs::digest;
use portcullis_policy_tools::build;
use serde_json::json;

use crate::args::policy::Build;
use crate::exit::Exit;
use crate::output::{Page, cell};

pub(super) fn run(args: &Build) -> crate::exit::Outcome {
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
