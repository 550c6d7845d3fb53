//! The reference page agrees with the tables.

use portcullis_settings::{PROTECTIONS, RealDisk, sensitive_table, validate};
use portcullis_settings_format::{FIELDS, FileKind, Status, reference_tables};

const PAGE: &str = include_str!("../../../../docs/configuration.md");
const END: &str = "<!-- end of";

#[test]
fn the_page_holds_the_generated_tables() {
    let mut page = PAGE.to_owned();
    for (begin, generated) in [
        ("<!-- fields: generated -->\n", reference_tables()),
        ("<!-- sensitive files: generated -->\n", sensitive_table()),
    ] {
        let (head, rest) = page.split_once(begin).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        page = format!("{head}{begin}{generated}{END}{tail}");
    }
    if page == PAGE {
        return;
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        std::fs::write(path, page).unwrap();
        return;
    }
    panic!("docs/configuration.md is behind the tables: run this test with UPDATE_REFERENCE=1");
}

#[test]
fn the_page_names_every_protection() {
    for protection in PROTECTIONS {
        assert!(PAGE.contains(&format!("`{}`", protection.id)), "{}", protection.id);
    }
}

#[test]
fn the_table_has_a_row_for_every_field() {
    let generated = reference_tables();
    for field in FIELDS {
        let row = generated.lines().find(|line| line.starts_with(&format!("| `{}` |", field.name)));
        let row = row.unwrap_or_else(|| panic!("{}", field.name));
        let status = match field.status {
            Status::Honoured => "honoured",
            Status::NoEffect(_) => "no effect",
            Status::Refused(_) => "refused",
        };
        assert!(row.contains(status), "{row}");
    }
}

/// The settings in the page's examples are valid.
#[test]
fn the_examples_load() {
    let mut blocks =
        PAGE.split("```json\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(text, _)| text);
    let mut seen = 0;
    for block in &mut blocks {
        let file = std::path::Path::new("docs/configuration.md");
        let whole = portcullis_settings_format::Settings::parse(block, file);
        let layer = portcullis_settings_format::Tightening::parse(
            block,
            file,
            portcullis_settings_format::Layer::Project,
        );
        let directory = tempfile::tempdir().unwrap();
        let projects = directory.path().join("projects.json");
        std::fs::write(&projects, format!("{{ \"/x\": {block} }}")).unwrap();
        let entry = validate(&projects, FileKind::Projects, &RealDisk).mistakes;
        assert!(whole.is_ok() || layer.is_ok() || entry.is_empty(), "{block}\n{:?}", whole.err());
        seen += 1;
    }
    assert!(seen >= 3);
}
