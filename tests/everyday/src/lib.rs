//! Everyday work, as a matrix: real tasks, each outside the sandbox as the control and inside it with default settings.
//!
//! - A [`Task`] is data: `tasks/AREA.toml` holds those of an area; `tasks/README.md` says what each field means.
//! - A [`Machine`] knows which programs and hosts there are. What a task needs and is not there is reported.
//! - A [`Row`] is a task with its results for one user: outside once, inside twice. The second time every answer of the
//!   first must hold, so that nothing is asked again.
//! - [`OneHome`] is the result of all tasks in one home, one after the other, with registries allowed.
//!
//! Inside, the harness is a client of `portcullis serve`, as pi is, and says yes "for this project" to each question.
//! It must never know what Portcullis decides.

mod home;
mod inside;
mod machine;
mod one_home;
pub mod report;
mod row;
mod task;

pub use inside::Asked;
pub use machine::Machine;
pub use one_home::{OneHome, run_in_one_home};
pub use row::{Outcome, Row, run};
pub use task::{Task, all};
