//! Texts in UTF-16, of which every second byte is zero.

/// The shortest text to be searched; all tokens are longer.
const SHORTEST: usize = 16;

/// Returns the longer texts of ASCII in UTF-16, of either byte order, in narrow characters.
pub(super) fn texts(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    let mut rest = bytes;
    // Every text in UTF-16 has a character with a zero behind it, in the one order or the other.
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        let start = zero.saturating_sub(1);
        let pairs = rest.get(start..).unwrap_or_default().chunks_exact(2);
        let text: Vec<u8> = pairs
            .map_while(|pair| matches!(pair, [1..=127, 0]).then(|| pair.first().copied()).flatten())
            .collect();
        // In the order with the zero first, the last character has none behind it.
        let end = start + text.len() * 2;
        let last = rest.get(end).copied().filter(u8::is_ascii);
        if text.len() >= SHORTEST {
            texts.push(text.into_iter().chain(last).collect());
        }
        rest = rest.get(end.max(zero + 1)..).unwrap_or_default();
    }
    texts
}
