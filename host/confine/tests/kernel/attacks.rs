use crate::Test;
pub(crate) const TESTS: &[Test] = &[];
pub(crate) const ATTEMPT: &str = "__attempt";
pub(crate) fn attempt(_a: &[String]) -> std::process::ExitCode { std::process::ExitCode::SUCCESS }
