//! Printing of the policy in force.

use portcullis_bootstrap::in_force::{InForce, OFF};
use portcullis_command_line::output::{Page, Tint, tinted};

/// Maximum number of items of a list to print. `--json` has all.
const MOST_LISTED: usize = 8;

/// Prints the policy in force under a title.
pub(crate) fn print(page: &mut Page, in_force: &InForce, title: &str) {
    page.line(&format!("\n{title}"));
    match in_force {
        InForce::Off => page.row("  ", &[tinted(OFF, Tint::Bad)], &[]),
        InForce::Rules(statements) => {
            for statement in statements.all(MOST_LISTED) {
                // Full length; its parts are already escaped.
                page.sentence("  ", &statement.text);
            }
        }
    }
}
