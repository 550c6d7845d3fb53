//! Dates at which keys become valid and invalid.
//!
//! Written by hand: no other part of the program needs a calendar.

/// Seconds since 1970-01-01, UTC.
pub type Seconds = i64;

/// Parses a date such as `2027-01-31`, or one in the format of `allowed_signers` files.
///
/// That format is `20270131`, `202701312359` or `20270131235959`, each optionally with a `Z`. All dates are
/// taken as UTC.
pub(crate) fn parse(text: &str) -> Option<Seconds> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let digits: String = match text.split('-').collect::<Vec<_>>().as_slice() {
        [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() == 2 => {
            [*year, month, day].concat()
        }
        [digits] => (*digits).to_owned(),
        _ => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || ![8, 12, 14].contains(&digits.len()) {
        return None;
    }
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or("0").parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let is_date = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if year < 1970 || !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns days since 1970-01-01. Years begin in March here, so that a leap day is the last day of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn days_in_both_spellings() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("20000229", Some(951_782_400)),
            ("202701010000Z", Some(1_798_761_600)),
            ("20270101000001", Some(1_798_761_601)),
            ("2027-02-29", None),
            ("2027-1-1", None),
            ("2027-13-01", None),
            ("tomorrow", None),
            ("2027010", None),
            ("202701012460", None),
            ("20é70101", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
