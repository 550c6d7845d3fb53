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

/// Pages with settings files in their examples; those of the cookbook and the tutorial are run by `tests/it`.
const EXAMPLES: [(&str, &str); 5] = [
    ("configuration.md", PAGE),
    ("coming-from.md", include_str!("../../../../docs/coming-from.md")),
    ("devices.md", include_str!("../../../../docs/devices.md")),
    ("policy-authors.md", include_str!("../../../../docs/policy-authors.md")),
    ("text-policies.md", include_str!("../../../../docs/text-policies.md")),
];

/// The settings in the examples are valid: as the user's, as a layer that tightens, or as an entry of a project.
#[test]
fn the_examples_load() {
    for (name, page) in EXAMPLES {
        let blocks =
            page.split("```json\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(text, _)| text);
        let mut seen = 0;
        for block in blocks {
            // A single key is shown without the braces around it.
            let block = if block.starts_with('{') { block.to_owned() } else { format!("{{ {block} }}") };
            let file = std::path::Path::new("docs").join(name);
            let whole = portcullis_settings_format::Settings::parse(&block, &file);
            let layer = portcullis_settings_format::Tightening::parse(
                &block,
                &file,
                portcullis_settings_format::Layer::Project,
            );
            let directory = tempfile::tempdir().unwrap();
            let projects = directory.path().join("projects.json");
            std::fs::write(&projects, format!("{{ \"/x\": {block} }}")).unwrap();
            let entry = validate(&projects, FileKind::Projects, &RealDisk).mistakes;
            assert!(whole.is_ok() || layer.is_ok() || entry.is_empty(), "{name}: {block}\n{:?}", whole.err());
            seen += 1;
        }
        assert!(seen > 0, "{name} has no example");
    }
}

/// No other page has settings that nothing checks.
#[test]
fn every_page_with_settings_is_known() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in std::fs::read_dir(docs).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let is_run = ["cookbook.md", "tutorial.md", "protocol.md"].contains(&name.as_str());
        if !file.is_file() || is_run || EXAMPLES.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("```json"), "{name}");
    }
}
