//! The cases of a policy: TOML files in its `tests/`, request in, verdict out.
//!
//! The same file runs natively ([`run`]) and, through a host, as a component
//! ([`read`] and [`Case::check`]), and both must agree.
//!
//! ```
//! # use portcullis_sdk::cases;
//! let file = r#"
//! ## What holds for every case; each key is optional, and a case can overrule it.
//! [given]
//! cwd = "/srv/app"
//! config = { allowWrite = [{ tree = "/srv/app" }] }
//!
//! ## One request: `read`, `write`, `edit`, `list`, `search`, `delete`, `create-directory`,
//! ## `command`, `user-command`, `escalation`, `connect` or `tool`; or a list of them.
//! [[case]]
//! name = "the workspace can be changed"
//! write = ["/srv/app/a", "/srv/app/deep/b"]
//! expect = "allow"                    # allow, ask, deny or abstain
//! rule = "workspace.write"            # optional
//!
//! [[case]]
//! name = "a link is judged by where it leads"
//! given = { interactive = false }     # also: home, temp, sub-agent, path, toolchains, agent-directory, branch,
//!                                     ## attributes = { "vendor:name" = 1 }: facts that come with the request
//! read = "/srv/app/link"
//! canonical = "/etc/shadow"
//! expect = "abstain"
//!
//! ## The output of a tool, before the model sees it.
//! [[output]]
//! name = "keys are taken out"
//! text = "AKIAIOSFODNN7EXAMPLE"
//! expect = "replace"                  # pass, replace, withhold or abstain
//!
//! ## One right in the standing rules: `read`, `write`, `execute` or `connect`.
//! [[standing]]
//! name = "programs can be run"
//! execute = "/usr/bin/env"
//! given = { during = "make" }         # optional: the stricter rules for one command, where there are any
//! expect = "allow"                    # allow, ask, deny or none
//!
//! ## One configuration, and the pointers of what is refused in it; empty: none is.
//! [[configure]]
//! name = "typing errors are refused"
//! config = { alowWrite = [] }
//! refuse = ["/alowWrite"]
//! "#;
//! assert_eq!(cases::read(file).unwrap().len(), 6);
//! ```

mod case;
mod format;
mod run;

pub use case::{Answer, Case, Connection, Expected, Given, Operation, Question};
pub use format::{CasesError, read};
pub use run::{Report, run};
