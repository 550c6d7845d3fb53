//! `policy inspect`: shows identity, imports and pack of a component.
//!
//! Only its `describe` function is run, and components that cannot run here are shown as well.

use portcullis_bootstrap::policy_source;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::policy::Inspect;
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_packs::digest;
use portcullis_policy_tools::Component;
use serde_json::json;

pub(super) fn run(inspect: &Inspect) -> exit::Outcome {
    let component = Component::open(&inspect.policy)?;
    let runtime = portcullis_policy_tools::runtime()?;
    let surface = runtime.surface(&component.bytes)?;
    let said =
        runtime.describe(&component.bytes).map_err(|error| format!("{:#}", anyhow::Error::from(error)));
    let exit = if said.is_ok() { Exit::Done } else { Exit::Bad };
    let around = ProcessEnv::read()?;
    let mut page = Page::new(&around);
    let digest = digest(&component.bytes);
    let trust = match &component.text {
        Some(_) => policy_source::Origin::Shipped.words(),
        None => policy_source::vouching_words(&component.file, &component.bytes, &around.agent_directory)?,
    };
    if inspect.json {
        let pack = component.pack.as_ref().map(|pack| {
            json!({
                "manifest": pack.manifest, "provenance": pack.provenance,
                "cases": pack.cases.keys().collect::<Vec<_>>(),
                "readme": !pack.readme.is_empty(), "licence": !pack.licence.is_empty(),
            })
        });
        page.json(&json!({
            "component": component.file, "digest": format!("sha256:{digest}"), "bytes": component.bytes.len(),
            "trust": trust,
            "imports": surface.imports, "exports": surface.exports, "pack": pack,
            "description": said.as_ref().ok(), "fault": said.as_ref().err(),
        }));
        page.print()?;
        return Ok(exit);
    }
    let mut rows = match &said {
        Ok(said) => vec![
            vec![cell("policy"), cell(&format!("{} {}", said.id, said.version))],
            vec![cell("title"), cell(&said.title)],
        ],
        Err(fault) => vec![vec![cell("policy"), tinted(&format!("refused here: {fault}"), Tint::Bad)]],
    };
    rows.extend([
        vec![cell("digest"), cell(&format!("sha256:{digest}"))],
        vec![cell("trust"), cell(&trust)],
        vec![cell("size"), cell(&format!("{} bytes", component.bytes.len()))],
        vec![cell("exports"), cell(&listed(&surface.exports))],
        vec![cell("imports"), cell(&listed(&imports(&surface.imports)))],
    ]);
    match &component.pack {
        None => rows.push(vec![cell("carries"), tinted("nothing; it is a bare component", Tint::Open)]),
        Some(pack) => {
            let about = &pack.manifest.policy;
            let wants = &pack.manifest.capabilities;
            rows.push(vec![cell("licence"), cell(&about.license)]);
            rows.push(vec![cell("source"), cell(&about.repository)]);
            rows.push(vec![cell("built by"), cell(&pack.provenance.builder)]);
            rows.push(vec![cell("carries"), cell(&format!("{} files of cases", pack.cases.len()))]);
            let wanted = serde_json::to_string(wants)?;
            rows.push(vec![cell("wants"), cell(&wanted)]);
        }
    }
    page.table("", &rows);
    if let Ok(said) = &said {
        page.line("rules");
        let rules: Vec<_> = said.rules.iter().map(|rule| vec![cell(&rule.id), cell(&rule.title)]).collect();
        page.table("  ", &rules);
    }
    page.print()?;
    Ok(exit)
}

/// Returns the imports in words. Those of WASI are one: they are stubs, which give no access.
fn imports(all: &[String]) -> Vec<String> {
    let (wasi, own): (Vec<&String>, Vec<&String>) = all.iter().partition(|name| name.starts_with("wasi:"));
    let stubs = (!wasi.is_empty()).then(|| format!("{} of WASI (no access)", wasi.len()));
    own.into_iter().cloned().chain(stubs).collect()
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
