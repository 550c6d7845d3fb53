//! The text of a definition: a header between lines of `---`, and a template.

use portcullis_settings_format::error::shown;

use super::template::{TemplatePart, TemplateValue};

/// A definition as it is written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) parts: Vec<TemplatePart>,
    /// The names of the skills, each with its line.
    pub(super) skills: Vec<(u32, String)>,
}

/// A line, from 1 on, and the mistake in it.
pub(super) type Mistake = (u32, String);

pub(super) fn parse(text: &str) -> Result<Parsed, Mistake> {
    let (header, template, first) = split(text)?;
    let mut parsed = Parsed::default();
    for (line, text) in (2..).zip(header.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match text.split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
            Some(("skills", value)) => {
                let names = value.trim_start_matches('[').trim_end_matches(']').split(',').map(str::trim);
                for name in names.filter(|name| !name.is_empty()) {
                    if !is_skill_name(name) {
                        let why = format!(
                            "`{}` is no name of a skill: lower-case letters, digits and `-`",
                            shown(name)
                        );
                        return Err((line, why));
                    }
                    parsed.skills.push((line, name.to_owned()));
                }
            }
            _ => return Err((line, format!("the header has the key `skills`, not `{}`", shown(text)))),
        }
    }
    parsed.parts = parts(template, first)?;
    let rules =
        parsed.parts.iter().filter(|part| **part == TemplatePart::Value(TemplateValue::Rules)).count();
    if rules > 1 {
        return Err((first, "`{{rules}}` is there twice".to_owned()));
    }
    Ok(parsed)
}

/// Returns the header, the template, and the number of the template's first line.
fn split(text: &str) -> Result<(&str, &str, u32), Mistake> {
    let Some(rest) = text.strip_prefix("---\n") else { return Ok(("", text, 1)) };
    let ends = rest.strip_prefix("---\n").map(|template| ("", template));
    let (header, template) = ends
        .or_else(|| rest.split_once("\n---\n"))
        .or_else(|| Some((rest.strip_suffix("\n---")?, "")))
        .ok_or_else(|| (1, "the header has no end, a line of `---`".to_owned()))?;
    let lines = u32::try_from(header.lines().count()).unwrap_or(u32::MAX);
    Ok((header, template, lines.saturating_add(3)))
}

fn parts(template: &str, first: u32) -> Result<Vec<TemplatePart>, Mistake> {
    let mut parts = Vec::new();
    for (number, line) in (first..).zip(template.split_inclusive('\n')) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) =
                after.split_once("}}").ok_or_else(|| (number, "`{{` has no `}}` in its line".to_owned()))?;
            let value = value(name.trim()).ok_or_else(|| (number, unknown(name.trim())))?;
            text(&mut parts, before);
            parts.push(TemplatePart::Value(value));
            rest = after;
        }
        text(&mut parts, rest);
    }
    Ok(parts)
}

/// Adds text to the part before it, if that is text as well.
fn text(parts: &mut Vec<TemplatePart>, more: &str) {
    match parts.last_mut() {
        Some(TemplatePart::Text(known)) => known.push_str(more),
        _ if more.is_empty() => {}
        _ => parts.push(TemplatePart::Text(more.to_owned())),
    }
}

fn value(name: &str) -> Option<TemplateValue> {
    TemplateValue::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn unknown(name: &str) -> String {
    let known: Vec<String> =
        TemplateValue::NAMES.iter().map(|(name, _)| format!("`{{{{{name}}}}}`")).collect();
    format!("there is no value `{}`; there are {}", shown(name), known.join(", "))
}

pub(super) fn is_skill_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Parsed {
        parse(text).unwrap_or_else(|(line, why)| panic!("{text}: {line}: {why}"))
    }

    #[test]
    fn a_template_has_text_and_values() {
        let Parsed { parts, skills } = parsed(
            "---\n# for reviews\nskills: [review, git-help]\nskills: x\n---\nYou are {{agent}} on\n{{ system }}.\n",
        );
        assert_eq!(skills, [(3, "review".to_owned()), (3, "git-help".to_owned()), (4, "x".to_owned())]);
        let text = |text: &str| TemplatePart::Text(text.to_owned());
        let value = TemplatePart::Value;
        assert_eq!(
            parts,
            [
                text("You are "),
                value(TemplateValue::Agent),
                text(" on\n"),
                value(TemplateValue::System),
                text(".\n")
            ]
        );
        for plain in ["", "no header", "one { brace }\n---\nlater"] {
            assert!(parsed(plain).parts.iter().all(|part| *part == text(plain)), "{plain}");
        }
        assert_eq!(parsed("---\n---\n"), Parsed::default());
        assert_eq!(parsed("---\nskills: a\n---").skills.len(), 1);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, line, part) in [
            ("---\nskills: a\n", 1, "no end"),
            ("---\nskill: a\n---\n", 2, "`skills`"),
            ("---\n\nskills: ../x\n---\n", 3, "no name of a skill"),
            ("---\nskills: a\n---\nx\n{{os}}", 5, "`{{system}}`"),
            ("x\n{{rules\n}}", 2, "no `}}`"),
            ("{{rules}} {{rules}}", 1, "twice"),
        ] {
            let (at, why) = parse(text).expect_err(text);
            assert!(at == line && why.contains(part), "{text}: {at}: {why}");
        }
    }
}
