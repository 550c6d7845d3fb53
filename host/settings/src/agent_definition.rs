//! Agent definitions: the user's own text for the model, with the skills of an agent.
//!
//! A definition is a file `agents/NAME.md` in the directory of the settings; `agents/default.md` is for agents without
//! one. It is data: names in double braces are replaced, and nothing in it is run. A definition never changes a rule,
//! so one that cannot be used is left out, with a warning.

mod parse;
mod skill;
pub(crate) mod template;

use std::path::Path;

use portcullis_settings_format::error::shown;
use portcullis_settings_format::{Origin, Position, Warning};

use crate::disk::Disk;
use crate::found::FoundSettings;
use crate::places::Places;
use crate::settings_text;
pub use template::{AgentDefinition, Skill, TemplatePart, TemplateValue};

/// The name of the definition for agents without their own.
const DEFAULT: &str = "default";
/// The largest definition, in bytes: it is in every request to the model.
const LARGEST: usize = 16 << 10;
/// The most skills of an agent.
const MOST_SKILLS: usize = 32;

/// Reads the definition of this agent into `found`, with a warning if it cannot be used.
pub(crate) fn apply(found: &mut FoundSettings, places: &Places, disk: &dyn Disk) {
    let directory = places.agents_directory();
    let own = (!places.agent.is_empty()).then_some(places.agent.as_str());
    for name in own.into_iter().chain([DEFAULT]) {
        let file = directory.join(format!("{name}.md"));
        found.watched.push(file.clone());
        let text = match settings_text::read(&file, disk) {
            Ok(None) => continue,
            Ok(Some(text)) => Ok(text),
            Err(error) => Err((1, error.to_string())),
        };
        match text.and_then(|text| read(&text, &file, found, (places, disk))) {
            Ok(definition) => found.definition = Some(definition),
            Err((line, why)) => found.warnings.push(warning(&file, line, &why)),
        }
        // A broken definition is not replaced by that for all agents, which may say something else.
        return;
    }
}

fn warning(file: &Path, line: u32, why: &str) -> Warning {
    let text = format!("the model is not told this definition of the agent: {why}");
    let at = Position { line, column: 1 };
    Warning { text, origin: Origin { file: file.to_owned(), pointer: String::new(), at } }
}

/// Returns the definition in a text, or a line and the mistake in it.
fn read(
    text: &str,
    file: &Path,
    found: &mut FoundSettings,
    (places, disk): (&Places, &dyn Disk),
) -> Result<AgentDefinition, (u32, String)> {
    if text.len() > LARGEST {
        return Err((1, format!("it has more than {} KiB", LARGEST >> 10)));
    }
    let definition = parse::parse(&text.replace("\r\n", "\n"))?;
    if definition.skills.len() > MOST_SKILLS {
        return Err((1, format!("it has more than {MOST_SKILLS} skills")));
    }
    let mut skills = Vec::new();
    for (line, name) in &definition.skills {
        let (watched, skill) = skill::find(&places.agent_directory.join("skills"), name, disk);
        found.watched.extend(watched);
        match skill {
            Ok(skill) => skills.push(skill),
            // The others are of use without it.
            Err(why) => found.warnings.push(warning_of_skill(file, *line, name, &why)),
        }
    }
    Ok(AgentDefinition {
        file: file.to_owned(),
        agent: places.agent.clone(),
        parts: definition.parts,
        skills,
    })
}

fn warning_of_skill(file: &Path, line: u32, name: &str, why: &str) -> Warning {
    let text = format!("the model is not told the skill `{}`: {why}", shown(name));
    Warning { text, ..warning(file, line, "") }
}

#[cfg(test)]
mod tests;
