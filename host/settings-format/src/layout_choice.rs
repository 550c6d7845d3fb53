//! The layout of the settings files, as `default.json` chooses it.

use crate::error::Problem;
use crate::fault::Fault;
use crate::json::Node;
use crate::pointer::step;

/// The layout of the user's settings files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The layout of `@oddsjam/pi-sandbox`.
    ///
    /// The entry of `projects.json` that applies is used in full, else `default.json`.
    Projects,
    /// The layout of `@sysid/pi-sandbox`: `extensions/sandbox.json` merged key by key over the built-in settings.
    Layered,
}

/// Value of `layout` that chooses [`Layout::Layered`].
const LAYERED: &str = "layered";

/// Returns the layout that the text of `default.json` chooses.
///
/// # Errors
/// When the text is no JSON, or chooses the layered layout and holds other settings.
pub fn chosen(text: &str) -> Result<Layout, Fault> {
    let document = crate::json::read(text)?;
    if !chooses_layered(&document) {
        return Ok(Layout::Projects);
    }
    // Refuse other keys: they would have no effect, and the user would rely on them.
    match document.members().iter().find(|member| !["$schema", "layout"].contains(&member.key.as_str())) {
        None => Ok(Layout::Layered),
        Some(member) => {
            let reason = "in the layered layout settings stand in `extensions/sandbox.json`, move it there";
            let field = step("", &member.key);
            let problem = Problem::BadValue { field: field.clone(), reason: reason.to_owned() };
            Err(Fault { at: member.key_at, pointer: field, problem })
        }
    }
}

/// Returns true if a document chooses the layered layout.
pub fn chooses_layered(document: &Node) -> bool {
    document.member("layout").and_then(Node::text) == Some(LAYERED)
}
