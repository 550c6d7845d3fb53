//! Writes the rules on commands as a profile for macOS' `sandbox-exec`.
//!
//! The rule set is the one from which Linux makes mounts and the broker's answers. What it denies, the profile denies;
//! what it asks about, the profile denies as well, because nothing there can hold a call until the user has answered.
//!
//! Terms: a *statement* allows or denies operations on paths that meet a *filter*; the last statement that speaks about
//! an operation counts. A *pin* denies making and moving a directory on the way to a restricted path.
//!
//! This crate is pure: it reads no files and starts nothing. Its tests read the text with an evaluator of their own and
//! compare it with the rule set. Whether macOS reads it in the same way has not been tried.
//!
//! # Differences
//! [`DIFFERENCES`] lists what the rule set allows and the profile does not. In one way the profile shows more: the
//! metadata of directories on the way to what commands can read, which Linux shows as well.
//!
//! ```
//! use portcullis_decision::{Base, RuleSet};
//! use portcullis_seatbelt::{Wanted, compile};
//!
//! let base = Base { workspace: vec!["/Users/u/p".into()], closed: vec!["/Users".into()], ..Base::default() };
//! let rules = RuleSet::compile(Vec::new(), base, &[]);
//! let profile = compile(&Wanted::of_rules(&rules))?;
//! assert!(profile.starts_with("(version 1)\n(deny default)\n"));
//! # Ok::<(), portcullis_seatbelt::CompileError>(())
//! ```

mod differences;
mod error;
mod filter;
mod last_match;
mod layers;
mod pattern;
mod pins;
mod protected;
mod regex;
mod regions;
mod statement;
mod system;
mod wanted;
mod ways;

use portcullis_decision::profile::FileRight;

pub use differences::{DIFFERENCES, Difference};
pub use error::CompileError;
pub use wanted::Wanted;

use filter::Filter;
use statement::{CREATES, EXECUTES, LOOKS, NAMES, READS, Statement, WRITES};

/// Returns the text of the profile.
///
/// # Errors
/// If a restriction cannot be written; no command may run then.
pub fn compile(wanted: &Wanted<'_>) -> Result<String, CompileError> {
    let allowed = |right| layers::allowed(wanted.rules, right);
    let read = allowed(FileRight::Read)?;
    let unread = || Filter::not(read.clone());
    let pins = pins::pins(wanted.rules)?;
    let mut statements = vec![
        Statement::allow("what commands read", READS, read.clone()),
        Statement::allow("directories on the way there are visible", LOOKS, ways::ways(wanted.rules)),
        Statement::allow("programs that they start", EXECUTES, allowed(FileRight::Execute)?),
        Statement::deny("what they cannot read, they cannot start", EXECUTES, unread()),
        Statement::allow("what they write", WRITES, allowed(FileRight::Write)?),
        Statement::deny("what they cannot read, they cannot move", WRITES, unread()),
        Statement::deny("directories on the way to a restricted path stay", NAMES, pins.kept),
        Statement::deny("restricted names, in other directories", READS, pins.unreadable_elsewhere),
        Statement::deny("restricted names, in other directories", WRITES, pins.unwritable_elsewhere),
        Statement::deny("other spellings of restricted names", CREATES, pins.spellings),
    ];
    statements.extend(protected::statements(wanted)?);
    let mut text = system::BEGINNING.to_owned();
    statements.iter().for_each(|statement| statement.write(&mut text));
    text.push_str(system::DEVICES);
    system::network(&mut text, wanted.ports, wanted.sockets)?;
    Ok(text)
}
