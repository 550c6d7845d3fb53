//! `policy new`: creates a folder with a working example.

use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_bootstrap::streams::say;
use portcullis_command_line::args::policy::{Language, New};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::Page;
use portcullis_packs::Language as Written;
use portcullis_policy_tools::create;
use serde_json::json;

pub(super) fn run(new: &New) -> exit::Outcome {
    let language = match new.lang {
        Language::Rust => Written::Rust,
        Language::Js => Written::Js,
        Language::Python => Written::Python,
        Language::C => Written::C,
        Language::Go => Written::Go,
    };
    let created = create(&new.folder, new.id.as_deref(), language)?;
    if new.json {
        let mut page = Page::new(&ProcessEnv::read()?);
        page.json(&json!({ "folder": new.folder, "id": created.id, "language": created.language }));
        page.print()?;
        return Ok(Exit::Done);
    }
    let folder = new.folder.display();
    say(&format!("made the policy `{}` in `{folder}`; next:", created.id));
    say(&format!("  portcullis policy build {folder}\n  portcullis policy test {folder}"));
    Ok(Exit::Done)
}
