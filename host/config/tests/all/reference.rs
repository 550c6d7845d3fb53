//! The reference page says what the table says.

use portcullis_config::{FIELDS, PROTECTIONS, Status, reference_tables};

const PAGE: &str = include_str!("../../../../docs/configuration.md");
const BEGIN: &str = "<!-- fields: generated -->\n";
const END: &str = "<!-- end of fields -->";

#[test]
fn the_page_holds_the_table_of_fields() {
    let generated = reference_tables();
    let (head, rest) = PAGE.split_once(BEGIN).unwrap();
    let (found, tail) = rest.split_once(END).unwrap();
    if found == generated {
        return;
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        std::fs::write(path, format!("{head}{BEGIN}{generated}{END}{tail}")).unwrap();
        return;
    }
    panic!("docs/configuration.md is behind the table of fields: run this test with UPDATE_REFERENCE=1");
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

/// The settings shown on the page load as they are.
#[test]
fn the_examples_load() {
    let mut blocks =
        PAGE.split("```json\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(text, _)| text);
    let mut seen = 0;
    for block in &mut blocks {
        let file = std::path::Path::new("docs/configuration.md");
        let whole = portcullis_config::Settings::parse(block, file);
        let layer = portcullis_config::Tightening::parse(block, file, portcullis_config::Layer::Project);
        assert!(whole.is_ok() || layer.is_ok(), "{block}\n{:?}", whole.err());
        seen += 1;
    }
    assert!(seen >= 3);
}
