//! Reads and writes the custom sections of a pack.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::PackError;
use crate::manifest::Manifest;
use crate::section::{append, empty, sections};

/// Largest section, in bytes.
const SECTION_MAX: usize = 512 << 10;
/// Largest size of all sections of a pack together, in bytes.
const ALL_MAX: usize = 2 << 20;
/// Prefix of the names of our sections.
const PREFIX: &str = "portcullis:";

/// The data that a component carries in addition to its code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pack {
    /// The manifest.
    pub manifest: Manifest,
    /// JSON Schema of the configuration. Empty if the policy takes none.
    pub schema: String,
    /// Files of cases, by name.
    pub cases: BTreeMap<String, String>,
    /// The README.
    pub readme: String,
    /// The text of the licence.
    pub licence: String,
    /// How the component was built.
    pub provenance: Provenance,
}

/// A builder's statement about how a component was built. It proves nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provenance {
    /// Name and version of the builder.
    pub builder: String,
    /// The toolchain.
    pub language: String,
    /// SHA-256 over the names and contents of the source files.
    pub source: String,
}

impl Pack {
    /// Embeds this data into a component, replacing any that it carries.
    ///
    /// # Errors
    /// Fails when the bytes are not a component, or the data exceeds the limits of a pack.
    pub fn embed(&self, component: &[u8]) -> Result<Vec<u8>, PackError> {
        let mut made = empty();
        for section in sections(component)? {
            if !section.custom.is_some_and(|(name, _)| name.starts_with(PREFIX)) {
                made.extend_from_slice(section.whole);
            }
        }
        for (name, content) in self.texts() {
            if !content.is_empty() {
                check_size(&name, content.len())?;
                append(&mut made, &name, content.as_bytes());
            }
        }
        // Never return a pack that cannot be read.
        Self::read(&made)?;
        Ok(made)
    }

    /// Reads the data that a component carries. Returns `None` if there is no manifest.
    ///
    /// # Errors
    /// Fails when a section is damaged, duplicate, too long or invalid.
    pub fn read(component: &[u8]) -> Result<Option<Self>, PackError> {
        let sections = sections(component)?;
        let mut texts = BTreeMap::new();
        let mut all = 0;
        for (name, content) in sections.into_iter().filter_map(|section| section.custom) {
            let Some(name) = name.strip_prefix(PREFIX) else { continue };
            check_size(name, content.len())?;
            all += content.len();
            if all > ALL_MAX {
                return Err(pack_error(name, "makes the sections larger than 2 MiB together"));
            }
            let text = std::str::from_utf8(content).map_err(|_| pack_error(name, "is not UTF-8"))?;
            if texts.insert(name.to_owned(), text.to_owned()).is_some() {
                return Err(pack_error(name, "is there twice"));
            }
        }
        let Some(manifest) = texts.remove("manifest") else { return Ok(None) };
        let mut take = |name: &str| texts.remove(name).unwrap_or_default();
        let json = |name: &'static str, text: String| match text.as_str() {
            "" => Ok(serde_json::Value::Object(serde_json::Map::new())),
            text => {
                serde_json::from_str(text).map_err(|error| pack_error(name, &format!("is not JSON: {error}")))
            }
        };
        let cases = serde_json::from_value(json("cases", take("cases"))?);
        let provenance = serde_json::from_value(json("provenance", take("provenance"))?);
        Ok(Some(Self {
            manifest: Manifest::parse(&manifest)?,
            schema: take("schema"),
            cases: cases.map_err(|error| pack_error("cases", &error.to_string()))?,
            readme: take("readme"),
            licence: take("licence"),
            provenance: provenance.map_err(|error| pack_error("provenance", &error.to_string()))?,
        }))
    }

    fn texts(&self) -> [(String, String); 6] {
        let named = |name: &str, content: String| (format!("{PREFIX}{name}"), content);
        [
            named("manifest", toml::to_string(&self.manifest).unwrap_or_default()),
            named("schema", self.schema.clone()),
            named("cases", serde_json::to_string(&self.cases).unwrap_or_default()),
            named("readme", self.readme.clone()),
            named("licence", self.licence.clone()),
            named("provenance", serde_json::to_string(&self.provenance).unwrap_or_default()),
        ]
    }
}

fn check_size(name: &str, size: usize) -> Result<(), PackError> {
    if size <= SECTION_MAX { Ok(()) } else { Err(pack_error(name, "is longer than 512 KiB")) }
}

fn pack_error(name: &str, detail: &str) -> PackError {
    PackError::Section { name: name.to_owned(), detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack() -> Pack {
        let manifest = Manifest::parse(include_str!("../../../policies/workspace/policy.toml")).unwrap();
        Pack {
            manifest,
            schema: "{}".into(),
            cases: BTreeMap::from([("a.toml".into(), "[[case]]".into())]),
            readme: "# x".into(),
            ..Pack::default()
        }
    }

    #[test]
    fn a_pack_comes_back_as_it_went_in() {
        let mut component = empty();
        append(&mut component, "producers", b"\0");
        let once = pack().embed(&component).unwrap();
        assert_eq!(Pack::read(&once).unwrap(), Some(pack()));
        // Embedding again duplicates nothing.
        assert_eq!(pack().embed(&once).unwrap(), once);
        assert!(once.starts_with(&component));
        assert_eq!(Pack::read(&component).unwrap(), None);
    }

    #[test]
    fn what_a_pack_must_not_carry() {
        let section = |name: &str, content: &[u8]| {
            let mut component = pack().embed(&empty()).unwrap();
            append(&mut component, name, content);
            Pack::read(&component)
        };
        for (name, content, said) in [
            ("portcullis:readme", vec![b'x'], "twice"),
            ("portcullis:licence", vec![0xff], "UTF-8"),
            ("portcullis:licence", vec![b'x'; SECTION_MAX + 1], "512 KiB"),
        ] {
            let error = section(name, &content).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let mut bomb = pack().embed(&empty()).unwrap();
        (0..5).for_each(|index| append(&mut bomb, &format!("portcullis:x{index}"), &vec![b'x'; SECTION_MAX]));
        assert!(Pack::read(&bomb).unwrap_err().to_string().contains("2 MiB"));
        let mut broken = empty();
        append(&mut broken, "portcullis:manifest", b"[policy]");
        assert!(Pack::read(&broken).is_err());
        assert!(Pack { readme: "x".repeat(SECTION_MAX + 1), ..pack() }.embed(&empty()).is_err());
    }
}
