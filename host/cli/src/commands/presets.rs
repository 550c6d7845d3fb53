//! `portcullis presets`: named sets of hosts, with the reason for each.

use std::collections::BTreeSet;

use anyhow::Context as _;
use portcullis_bootstrap::loaded_settings;
use portcullis_bootstrap::process_env::ProcessEnv;
use portcullis_command_line::args::allow::{Presets, PresetsAction};
use portcullis_command_line::exit::{self, Exit};
use portcullis_command_line::output::{Page, Tint, cell, tinted};
use portcullis_settings::{Places, Preset, RealDisk, is_preset_name, preset, shipped_presets};
use portcullis_text::escape;
use serde_json::{Value, json};

/// Lists the presets, or shows one.
pub(crate) fn run(presets: &Presets) -> exit::Outcome {
    let around = ProcessEnv::read()?;
    let places = loaded_settings::places(&around, &around.cwd, None)?;
    let mut page = Page::new(&around);
    let exit = match &presets.action {
        None => list(&mut page, &places, presets.json)?,
        Some(PresetsAction::Show { name, json }) => {
            let preset = preset(name, &places, &RealDisk)?.with_context(|| {
                format!("no preset is called `{}`; `portcullis presets` lists them", escape(name))
            })?;
            if *json {
                page.json(&to_json(&preset))
            } else {
                show(&mut page, &preset)
            }
            Exit::Done
        }
    };
    page.print()?;
    Ok(exit)
}

/// Returns the names of all presets: shipped ones, the user's own, and those of the team.
pub(super) fn names(places: &Places) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = shipped_presets().map(str::to_owned).collect();
    if let Ok(own) = std::fs::read_dir(places.presets_directory()) {
        let name =
            |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".preset").map(str::to_owned);
        names.extend(own.flatten().filter_map(name).filter(|name| is_preset_name(name)));
    }
    names.extend(places.team.iter().flat_map(|team| team.presets.keys().cloned()));
    names
}

fn list(page: &mut Page, places: &Places, as_json: bool) -> anyhow::Result<Exit> {
    let (mut rows, mut all, mut exit) = (Vec::new(), Vec::new(), Exit::Done);
    for name in names(places) {
        match preset(&name, places, &RealDisk) {
            Ok(Some(preset)) => {
                let hosts = format!("{} hosts", preset.hosts.len());
                let of_team = places.team.as_ref().map(|team| &team.file);
                let whose = match &preset.file {
                    None => "",
                    file if file.as_ref() == of_team => "your team's",
                    Some(_) => "yours",
                };
                all.push(to_json(&preset));
                rows.push(vec![cell(&name), cell(&preset.title), tinted(&hosts, Tint::Faint), cell(whose)]);
            }
            Ok(None) => {}
            Err(error) => {
                exit = Exit::Bad;
                all.push(json!({ "name": name, "error": error.to_string() }));
                rows.push(vec![cell(&name), cell(&error.to_string())]);
            }
        }
    }
    if as_json {
        page.json(&json!({ "presets": all }))
    } else {
        page.table("", &rows)
    }
    Ok(exit)
}

fn show(page: &mut Page, preset: &Preset) {
    page.line(&format!("{}: {}", escape(&preset.name), escape(&preset.title)));
    let mib = preset.hosts.iter().map(|host| host.upload_mib).min().unwrap_or(0);
    page.line(&format!("  at most {mib} MiB are sent to each host in a session without a question"));
    let includes = preset.includes.iter().map(|line| ("include", line.value.clone(), &line.reason));
    let hosts = preset.hosts.iter().map(|host| ("host", host.pattern.to_string(), &host.reason));
    let reads = preset.reads.iter().map(|line| ("reads", line.value.clone(), &line.reason));
    let caches = preset.caches.iter().map(|line| ("cache", line.value.clone(), &line.reason));
    let row = |(kind, value, reason): (&str, String, &String)| {
        vec![cell(kind), cell(&value), tinted(reason, Tint::Faint)]
    };
    let rows: Vec<_> = includes.chain(reads).chain(hosts).chain(caches).map(row).collect();
    page.table("  ", &rows);
}

fn to_json(preset: &Preset) -> Value {
    let hosts = preset.hosts.iter().map(|host| {
        json!({ "host": host.pattern.to_string(), "reason": host.reason, "uploadMib": host.upload_mib })
    });
    let lines = |lines: &[portcullis_settings::PresetLine]| -> Vec<Value> {
        lines.iter().map(|line| json!({ "value": line.value, "reason": line.reason })).collect()
    };
    json!({
        "name": preset.name, "title": preset.title, "file": preset.file, "includes": lines(&preset.includes),
        "hosts": hosts.collect::<Vec<_>>(), "caches": lines(&preset.caches), "reads": lines(&preset.reads),
    })
}
