//! All tasks in one home, one after the other, with registries allowed: the questions of a developer who keeps one
//! project and answers "for this project".

use anyhow::Result;
use portcullis_it::User;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::inside::Asked;
use crate::row::{attempt, works_outside};
use crate::{Machine, Task};

/// The result for one user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OneHome {
    /// `root` or `user`.
    pub user: String,
    /// The number of tasks that work outside.
    pub outside: usize,
    /// The tasks that work outside and not in this home, in the order in which they ran.
    pub failed: Vec<String>,
    /// All questions, in the order in which they came.
    pub asked: Vec<Asked>,
}

/// Runs each task that this machine can run once, in the same home.
///
/// `progress` gets a line for each task.
///
/// # Errors
/// If the harness fails; a task that fails is a result.
pub fn run_in_one_home(
    machine: &Machine,
    tasks: &[Task],
    user: User,
    progress: impl Fn(&str),
) -> Result<OneHome> {
    let home = Home::new(machine, user)?;
    let mut result = OneHome {
        user: crate::row::name_of(user).to_owned(),
        outside: 0,
        failed: Vec::new(),
        asked: Vec::new(),
    };
    let mut has_settings = false;
    for task in tasks {
        if !machine.missing(task, user)?.is_empty() {
            continue;
        }
        home.clear()?;
        home.furnish(&task.setup)?;
        if !has_settings {
            home.scene().portcullis(&["allow", "registries"])?.ended_with(0)?;
            has_settings = true;
        }
        let (inside, has_worked) = attempt(&home, task)?;
        let name = format!("{}: {}", task.area, task.name);
        progress(&format!("{name}: {} questions", inside.asked.len()));
        if has_worked || works_outside(machine, task, user)? {
            result.outside += 1;
        }
        if !has_worked {
            progress(&format!("{name}: does not work inside"));
            result.failed.push(name);
        }
        result.asked.extend(inside.asked);
    }
    Ok(result)
}
