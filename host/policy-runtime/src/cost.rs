//! How much work a component is for the compiler, looked at before that begins: a small file can be hours of it.
//!
//! The compiler's time grows with the code, and inside of one function with its local variables times the places where
//! its ways meet. Both are counted here in one pass over the bytes, which takes milliseconds.

use wasmparser::{BinaryReaderError, FunctionBody, Operator, Parser, Payload};

use crate::error::LoadError;
use crate::limits;

/// Work of a component.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Cost {
    /// Bytes of code.
    code: u64,
    /// Bytes of its largest function.
    largest: u64,
    functions: u64,
    /// Local variables times places where ways meet, added up over all functions.
    meetings: u64,
}

impl Cost {
    /// What there is too much of: its name, how much there is, and how much there may be.
    fn excess(self) -> Option<(&'static str, u64, u64)> {
        let all = [
            ("bytes of code", self.code, limits::CODE),
            ("bytes in one function", self.largest, limits::FUNCTION_CODE),
            ("functions", self.functions, limits::FUNCTIONS),
            ("local variables times blocks", self.meetings, limits::MEETINGS),
        ];
        all.into_iter().find(|(_, found, limit)| found > limit)
    }
}

/// Refuses a component that is too much work.
///
/// # Errors
/// When it is, or its code cannot be read.
pub(crate) fn check(component: &[u8]) -> Result<(), LoadError> {
    let cost = of(component).map_err(|error| LoadError::Compile { source: wasmtime::Error::new(error) })?;
    match cost.excess() {
        Some((what, found, limit)) => Err(LoadError::TooMuchCode { what, found, limit }),
        None => Ok(()),
    }
}

/// Adds the work up, until it is too much.
fn of(component: &[u8]) -> Result<Cost, BinaryReaderError> {
    let mut cost = Cost::default();
    for payload in Parser::new(0).parse_all(component) {
        let Payload::CodeSectionEntry(body) = payload? else { continue };
        let range = body.range();
        let size = range.end.saturating_sub(range.start);
        cost.functions += 1;
        cost.code = cost.code.saturating_add(size);
        cost.largest = cost.largest.max(size);
        if cost.excess().is_some() {
            break;
        }
        cost.meetings = cost.meetings.saturating_add(meetings(&body)?);
    }
    Ok(cost)
}

fn meetings(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    let mut locals: u64 = 0;
    for local in body.get_locals_reader()? {
        let (count, _) = local?;
        locals = locals.saturating_add(u64::from(count));
    }
    let mut places: u64 = 1;
    for operator in body.get_operators_reader()? {
        let is_place =
            matches!(operator?, Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. });
        places += u64::from(is_place);
    }
    Ok(locals.saturating_mul(places))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component with one function of so many local variables and blocks.
    fn component(locals: usize, blocks: usize) -> Vec<u8> {
        let locals = "i32 ".repeat(locals);
        let blocks = "(if (local.get 0) (then (local.set 1 (i32.const 1))))".repeat(blocks);
        wat::parse_str(format!("(component (core module (func (local {locals}) {blocks})))")).unwrap()
    }

    #[test]
    fn what_is_small_and_hours_of_work_is_refused() {
        let bomb = component(2000, 7500);
        assert!(bomb.len() < 100_000);
        let refused = check(&bomb).unwrap_err();
        assert!(matches!(refused, LoadError::TooMuchCode { found: 15_002_000, .. }), "{refused}");
        // The controls: the most variables of any toolchain's functions, and the most blocks.
        check(&component(300, 4000)).unwrap();
        assert!(check(&component(2000, 7500)[..1000]).is_err(), "cut off");
    }

    #[test]
    fn each_limit_is_told() {
        let excess = |cost: Cost| cost.excess().map(|(what, ..)| what);
        assert_eq!(excess(Cost::default()), None);
        assert_eq!(excess(Cost { code: limits::CODE + 1, ..Cost::default() }), Some("bytes of code"));
        let largest = limits::FUNCTION_CODE + 1;
        assert_eq!(excess(Cost { largest, ..Cost::default() }), Some("bytes in one function"));
        assert_eq!(excess(Cost { functions: limits::FUNCTIONS + 1, ..Cost::default() }), Some("functions"));
    }
}
