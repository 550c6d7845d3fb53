//! The unpredictable part of an answer that allows.

use std::io;

/// Returns the suffix of an answer that allows: four unpredictable digits.
pub fn answer_number() -> io::Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)?;
    let digits: String = random.map(|byte| char::from(b'0' + byte % 10)).iter().collect();
    Ok(format!("-{digits}"))
}
