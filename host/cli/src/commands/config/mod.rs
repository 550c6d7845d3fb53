//! `portcullis config`: what the settings say, and where.

mod show;
mod validate;

use portcullis_config::{FileKind, Layer, Places, RealDisk, discover, json_schema};

use crate::args::config::{Config, Kind, Place};
use crate::exit::Exit;
use crate::page::{Page, Tint, cell, tinted};
use crate::surroundings::Surroundings;
use crate::wire;

/// Shows and checks settings.
pub(crate) fn run(config: Config) -> crate::Outcome {
    let around = Surroundings::read()?;
    match config {
        Config::Show { place, json } => show::run(&around, &places(&around, &place)?, json),
        Config::Validate { place, file, kind, json } => {
            let kind = kind.map(FileKind::from);
            validate::run(&around, &places(&around, &place)?, file, kind, json)
        }
        Config::Schema { kind } => {
            let mut page = Page::new(&around);
            page.pretty_json(&json_schema(kind.into()));
            page.print()?;
            Ok(Exit::Done)
        }
        Config::Path { place, all } => path(&around, &places(&around, &place)?, all),
    }
}

impl From<Kind> for FileKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Settings => Self::Settings,
            Kind::Projects => Self::Projects,
            Kind::Project => Self::Tightening(Layer::Project),
            Kind::Machine => Self::Tightening(Layer::Machine),
        }
    }
}

fn places(around: &Surroundings, place: &Place) -> anyhow::Result<Places> {
    let project = place.project.as_deref().unwrap_or(&around.cwd);
    wire::places(around, project, place.settings.as_deref())
}

fn path(around: &Surroundings, places: &Places, all: bool) -> crate::Outcome {
    let found = discover(places, &RealDisk)?;
    let default = places.sandbox_directory().join("default.json");
    let used = found.source.file().unwrap_or(&default);
    let mut page = Page::new(around);
    if all {
        let row = |file: &std::path::PathBuf| {
            let (word, tint) = match (file.exists(), found.source.file() == Some(file)) {
                (true, true) => ("in use", Tint::Good),
                (true, false) if found.layers.iter().any(|layer| layer.file == *file) => {
                    ("in use", Tint::Good)
                }
                (true, false) => ("does not hold here", Tint::Plain),
                (false, _) => ("not there", Tint::Faint),
            };
            vec![tinted(word, tint), cell(&file.to_string_lossy())]
        };
        page.table("", &found.watched.iter().map(row).collect::<Vec<_>>());
    } else {
        page.line(&portcullis_session::visible(&used.to_string_lossy()));
    }
    page.print()?;
    Ok(Exit::Done)
}
