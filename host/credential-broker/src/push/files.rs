//! The search for credentials in the files of a push.

use portcullis_text::secrets::{FILE_SECRET_SPAN, secret_in_file};

/// Searches a file that comes in pieces.
#[derive(Default)]
pub(super) struct Scanner {
    /// The end of the bytes that came before.
    tail: Vec<u8>,
}

impl Scanner {
    /// Searches the next piece; the error names the credential.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        self.tail.extend_from_slice(piece);
        if let Some(kind) = secret_in_file(&self.tail) {
            return Err(format!(
                "a file in it has what looks like {kind}; take it out of the commits, or set `secrets` of the rule"
            ));
        }
        let surplus = self.tail.len().saturating_sub(FILE_SECRET_SPAN);
        self.tail.drain(..surplus);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_however_a_file_is_cut() {
        let text = format!("{} ghp_{} end", "x".repeat(500), "aB3d".repeat(9));
        for size in 1..text.len() {
            let mut scanner = Scanner::default();
            assert!(text.as_bytes().chunks(size).any(|piece| scanner.take(piece).is_err()), "{size}");
        }
        assert!(Scanner::default().take(&[b'x'; 9000]).is_ok());
    }
}
