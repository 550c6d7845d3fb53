//! Finds fields in the table.

use crate::fields::FIELDS;
use crate::schema::Field;

/// Returns the field called `name`.
///
/// ```
/// use portcullis_settings_format::{Status, field};
/// let status = field("network.filterRequest").map(|field| field.status);
/// assert!(matches!(status, Some(Status::Refused(_))));
/// ```
#[must_use]
pub fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// Returns the fields directly inside `parent`; the empty name stands for the document.
pub(crate) fn children(parent: &str) -> impl Iterator<Item = &'static Field> + Clone {
    FIELDS.iter().filter(move |field| field.name.rsplit_once('.').map_or("", |(parent, _)| parent) == parent)
}

/// Returns the known key nearest to a mistyped one.
pub fn nearest_key(typed: &str, parent: &str) -> Option<String> {
    nearest(typed, children(parent).map(Field::key)).map(str::to_owned)
}

/// Returns the word most similar to the typed one, if any is similar enough.
#[must_use]
pub fn nearest<'a>(typed: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Minimum similarity; below it a suggestion confuses.
    const LIKENESS: f64 = 0.7;
    let typed: String = typed.chars().take(64).collect::<String>().to_lowercase();
    let likeness = |word: &str| {
        let likeness = strsim::jaro_winkler(&typed, word);
        // In a short word, two letters that change places leave little that is alike.
        if strsim::osa_distance(&typed, word) == 1 { likeness.max(LIKENESS) } else { likeness }
    };
    words
        .map(|word| (likeness(&word.to_lowercase()), word))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|one, two| one.0.total_cmp(&two.0))
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_near_and_another_word_is_not() {
        let near = |typed: &str| nearest(typed, ["npm", "github", "registries"].into_iter());
        assert_eq!(near("nmp"), Some("npm"));
        assert_eq!(near("githb"), Some("github"));
        assert_eq!(near("registry"), Some("registries"));
        assert_eq!(near("x"), None);
        assert_eq!(near("cargo"), None);
    }
}
