//! Detects which files pi shows to the model as images, by their first bytes and by pi's own rules.

use portcullis_file_gate::spelling::PiLine;

/// Number of bytes that pi examines.
const LOOKED_AT: usize = 4_100;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Returns the type of an image, or `None` for files that pi shows as text.
pub(super) fn image_type(line: PiLine, bytes: &[u8]) -> Option<&'static str> {
    let bytes = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    match bytes {
        // Models do not support lossless JPEG.
        [0xff, 0xd8, 0xff, 0xf7, ..] => None,
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        _ if bytes.starts_with(PNG) => is_still_png(bytes).then_some("image/png"),
        [b'G', b'I', b'F', ..] if line == PiLine::V0 => Some("image/gif"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'B', b'M', ..] if line == PiLine::V1 && is_bmp(bytes) == Some(true) => Some("image/bmp"),
        _ => None,
    }
}

/// Returns true if a PNG has a valid header and no animation before its image.
fn is_still_png(bytes: &[u8]) -> bool {
    if big(bytes, 8) != Some(13) || bytes.get(12..16) != Some(b"IHDR") {
        return false;
    }
    let mut at = PNG.len();
    while let (Some(length), Some(kind)) = (big(bytes, at), bytes.get(at + 4..at + 8)) {
        match kind {
            b"acTL" => return false,
            b"IDAT" => return true,
            _ => {}
        }
        at = match at.checked_add(12).and_then(|at| at.checked_add(usize::try_from(length).ok()?)) {
            Some(next) if next <= bytes.len() => next,
            _ => return true,
        };
    }
    true
}

/// Returns whether the header of a BMP is valid, or `None` if it is cut off.
fn is_bmp(bytes: &[u8]) -> Option<bool> {
    let (size, data, head) = (little(bytes, 2)?, little(bytes, 10)?, little(bytes, 14)?);
    if bytes.len() < 26 || size != 0 && size < 26 || data < head.checked_add(14)? || size != 0 && data >= size
    {
        return Some(false);
    }
    let at = match head {
        12 => 22,
        40..=124 if bytes.len() >= 30 => 26,
        _ => return Some(false),
    };
    let (planes, bits) = (short(bytes, at)?, short(bytes, at + 2)?);
    Some(planes == 1 && matches!(bits, 1 | 4 | 8 | 16 | 24 | 32))
}

fn four(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok()
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    four(bytes, at).map(u32::from_be_bytes)
}

fn little(bytes: &[u8], at: usize) -> Option<u32> {
    four(bytes, at).map(u32::from_le_bytes)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], old: Option<&str>, new: Option<&str>) {
        assert_eq!(image_type(PiLine::V0, bytes), old, "{bytes:?}");
        assert_eq!(image_type(PiLine::V1, bytes), new, "{bytes:?}");
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        let png = [PNG, b"\0\0\0\x0dIHDR............"].concat();
        check(&png, Some("image/png"), Some("image/png"));
        check(&png[..15], None, None);
        check(b"\x89PNG\r\n\x1a\n....", None, None);
        let animated = [PNG, b"\0\0\0\x0dIHDR.............crc.\0\0\0\x08acTL"].concat();
        check(&animated, None, None);
        check(b"\xff\xd8\xff", Some("image/jpeg"), Some("image/jpeg"));
        check(b"\xff\xd8\xff\xf7", None, None);
        check(b"GIF89a", Some("image/gif"), Some("image/gif"));
        check(b"GIF is a word", Some("image/gif"), None);
        check(b"RIFF\0\0\0\0WEBPVP8", Some("image/webp"), Some("image/webp"));
        check(b"RIFF\0\0\0\0WAVE", None, None);
        check(b"BMW", None, None);
        let mut bmp = b"BM".to_vec();
        bmp.extend([58, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 24, 0]);
        check(&bmp, None, Some("image/bmp"));
        check(b"text", None, None);
        check(b"", None, None);
    }
}
