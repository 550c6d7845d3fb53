//! Numbers as the model writes them: any JavaScript number.

use serde_json::Number;

/// Returns the number without its fraction; 0 unless it is positive.
pub(crate) fn positive(number: Option<&Number>) -> usize {
    number.and_then(Number::as_f64).map_or(0, whole)
}

/// Returns the number without its fraction, at least 1; `usual` if there is none.
pub(crate) fn at_least_one(number: Option<&Number>, usual: usize) -> usize {
    number.and_then(Number::as_f64).map_or(usual, whole).max(1)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` takes what is below 0 for 0 and what is too large for the largest"
)]
fn whole(number: f64) -> usize {
    number.floor().min(9_007_199_254_740_991.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_taken_for_one_that_makes_sense() {
        let number = |value| Number::from_f64(value);
        for (value, expected) in [(2.0, 2), (2.9, 2), (0.0, 1), (-3.0, 1), (0.5, 1)] {
            assert_eq!(at_least_one(number(value).as_ref(), 100), expected, "{value}");
        }
        assert_eq!(at_least_one(None, 100), 100);
        assert_eq!(at_least_one(number(1e300).as_ref(), 1), 9_007_199_254_740_991);
        assert_eq!(positive(number(-1.0).as_ref()), 0);
        assert_eq!(positive(number(2.5).as_ref()), 2);
        assert_eq!(positive(None), 0);
    }
}
