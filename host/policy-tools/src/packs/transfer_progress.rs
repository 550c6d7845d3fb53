//! The progress of a transfer, in one line of the terminal that is cleared afterwards.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};

use portcullis_packs::Transfer;

/// Clears the line.
const CLEAR: &str = "\r\x1b[K";

/// Returns a progress callback, which prints only to a terminal.
pub(super) fn shown() -> impl Fn(Transfer) {
    let is_terminal = portcullis_bootstrap::streams::errors().is_terminal();
    let last = Cell::new(String::new());
    move |transfer| {
        let line = line(transfer);
        if is_terminal && line != last.take() {
            // Ignore errors: the terminal may be gone.
            let mut error = portcullis_bootstrap::streams::errors().lock();
            let _written = write!(error, "{CLEAR}{line}").and_then(|()| error.flush());
        }
        last.set(line);
    }
}

fn line(transfer: Transfer) -> String {
    match transfer {
        Transfer::Asking => "portcullis: asking the registry …".to_owned(),
        Transfer::Getting { done, all } => {
            let percent = done.saturating_mul(100) / all.max(1);
            format!("portcullis: got {percent} % of {}", size(all))
        }
        Transfer::Sending { all } => format!("portcullis: sending {} …", size(all)),
        Transfer::Over => String::new(),
    }
}

/// Formats a size: from one megabyte on in tenths of a megabyte, below in kilobytes.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        for (transfer, expected) in [
            (Transfer::Getting { done: 0, all: 0 }, "portcullis: got 0 % of 0 kB"),
            (Transfer::Getting { done: 9_100_000, all: 18_250_000 }, "portcullis: got 49 % of 18.2 MB"),
            (Transfer::Sending { all: 1_500 }, "portcullis: sending 2 kB …"),
            (Transfer::Asking, "portcullis: asking the registry …"),
            (Transfer::Over, ""),
        ] {
            assert_eq!(line(transfer), expected);
        }
    }
}
