//! The SBOM: the crates that are linked into the programs, as CycloneDX 1.6.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::linked::Linked;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the document. It has no time and no number of its own, so that it is the same every time.
pub(super) fn of(crates: &[Linked], programs: &BTreeMap<&str, String>) -> Result<Vec<u8>> {
    let components: Vec<Value> = crates.iter().map(component).collect();
    let hashes = |sum: &String| json!([{ "alg": "SHA-256", "content": sum }]);
    let files: Vec<Value> = programs
        .iter()
        .map(|(name, sum)| json!({ "type": "file", "name": name, "hashes": hashes(sum) }))
        .collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "portcullis",
                "version": VERSION,
                "components": files,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
    });
    let mut text = serde_json::to_vec_pretty(&document).context("writing the SBOM")?;
    text.push(b'\n');
    Ok(text)
}

fn component(linked: &Linked) -> Value {
    let Linked { name, version, licence, sum, repository, .. } = linked;
    let mut component = json!({
        "type": "library", "name": name, "version": version, "licenses": [{ "expression": licence }],
    });
    let Some(fields) = component.as_object_mut() else { return component };
    if let Some(sum) = sum {
        // Only what comes from the registry has a name there.
        let purl = json!(format!("pkg:cargo/{name}@{version}"));
        fields.insert("bom-ref".to_owned(), purl.clone());
        fields.insert("purl".to_owned(), purl);
        fields.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": sum }]));
    }
    if let Some(url) = repository {
        fields.insert("externalReferences".to_owned(), json!([{ "type": "vcs", "url": url }]));
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed() {
        let linked = |name: &str, sum: Option<&str>| Linked {
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            licence: "MIT".to_owned(),
            sum: sum.map(str::to_owned),
            repository: None,
            folder: "/nowhere".into(),
        };
        let programs = BTreeMap::from([("portcullis", "aa".to_owned())]);
        let crates = [linked("own", None), linked("serde", Some("ff"))];
        let bytes = of(&crates, &programs).unwrap();
        assert_eq!(bytes, of(&crates, &programs).unwrap());
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let [own, serde] = [0, 1].map(|index| &document["components"][index]);
        assert!(own.get("purl").is_none() && own["licenses"][0]["expression"] == "MIT");
        assert_eq!(serde["purl"], "pkg:cargo/serde@1.2.3");
        assert_eq!(serde["hashes"][0]["content"], "ff");
        assert_eq!(document["metadata"]["component"]["components"][0]["hashes"][0]["content"], "aa");
        assert!(!String::from_utf8(bytes).unwrap().contains("/nowhere"));
    }
}
