//! The outermost sections of a component. Their content is not parsed.

use crate::error::PackError;

/// First eight bytes of a component: the magic, version 13, layer 1.
const HEADER: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// Largest number of outer sections. A list of them takes more memory than the sections themselves.
const SECTIONS_MAX: usize = 100_000;

/// One outer section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section<'a> {
    /// The bytes of the whole section, including its header.
    pub(crate) whole: &'a [u8],
    /// Name and content of a custom section.
    pub(crate) custom: Option<(&'a str, &'a [u8])>,
}

/// Splits a component into its outer sections.
pub(crate) fn sections(component: &[u8]) -> Result<Vec<Section<'_>>, PackError> {
    if component.get(..8) != Some(&HEADER[..]) {
        return Err(PackError::NotAComponent);
    }
    let mut sections = Vec::new();
    let mut at = HEADER.len();
    while at < component.len() {
        if sections.len() == SECTIONS_MAX {
            return Err(PackError::TooMany);
        }
        let damaged = || PackError::Damaged { at };
        let rest = component.get(at..).unwrap_or_default();
        let kind = *rest.first().ok_or_else(damaged)?;
        let (size, length) = leb(rest.get(1..).unwrap_or_default()).ok_or_else(damaged)?;
        let start = 1 + length;
        let content = start.checked_add(size).and_then(|end| rest.get(start..end)).ok_or_else(damaged)?;
        let custom = if kind == 0 { Some(named(content).ok_or_else(damaged)?) } else { None };
        let end = start + size;
        sections.push(Section { whole: rest.get(..end).unwrap_or_default(), custom });
        at += end;
    }
    Ok(sections)
}

fn named(content: &[u8]) -> Option<(&str, &[u8])> {
    let (size, length) = leb(content)?;
    let end = length.checked_add(size)?;
    Some((std::str::from_utf8(content.get(length..end)?).ok()?, content.get(end..)?))
}

/// Decodes an unsigned LEB128 number of at most 32 bits. Returns it with its length in bytes.
fn leb(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(u32::try_from(value).ok()?).ok()?, index + 1));
        }
    }
    None
}

/// Appends a custom section.
pub(crate) fn append(component: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut body = Vec::with_capacity(content.len() + name.len() + 5);
    put_leb(&mut body, name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    component.push(0);
    put_leb(component, body.len());
    component.extend_from_slice(&body);
}

fn put_leb(bytes: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

/// Returns a component without sections.
pub(crate) fn empty() -> Vec<u8> {
    HEADER.to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_appended_is_found(name in "[a-z:]{0,200}", content in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut component = empty();
            append(&mut component, "first", b"1");
            append(&mut component, &name, &content);
            let sections = sections(&component).unwrap();
            prop_assert_eq!(sections[1].custom, Some((name.as_str(), content.as_slice())));
            prop_assert_eq!(sections.len(), 2);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut component = empty();
            component.extend(bytes);
            if let Ok(sections) = sections(&component) {
                let whole: usize = sections.iter().map(|section| section.whole.len()).sum();
                prop_assert_eq!(whole + 8, component.len());
            }
        }
    }

    #[test]
    fn a_component_of_nothing_but_heads_is_refused() {
        let mut component = empty();
        component.resize(8 + 3 * SECTIONS_MAX, 0);
        for head in component.get_mut(8..).unwrap().chunks_mut(3) {
            head.copy_from_slice(&[0, 1, 0]);
        }
        assert_eq!(sections(&component).unwrap().len(), SECTIONS_MAX);
        component.extend([0, 1, 0]);
        assert!(matches!(sections(&component), Err(PackError::TooMany)));
    }

    #[test]
    fn cut_components_are_damaged() {
        let mut component = empty();
        append(&mut component, "name", &[7; 300]);
        for end in 9..component.len() {
            assert!(sections(component.get(..end).unwrap()).is_err(), "{end}");
        }
        assert!(matches!(sections(b"\0asm\x01\0\0\0"), Err(PackError::NotAComponent)));
    }
}
