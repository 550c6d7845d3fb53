//! A command that makes a repository of a directory outside its project, after a "yes".

use std::fs;
use std::sync::Arc;

use portcullis_each_user::{Test, cannot_run};
use portcullis_sandbox_runtime::Exit;

use crate::installers::Command;
use crate::scene::Scene;
use crate::sessions::Outside;

pub(crate) const TESTS: &[Test] =
    &[("order::what_a_yes_makes_a_repository_is_examined_before", is_examined_before)];

/// Settings without a program.
const HARMLESS: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";

fn is_examined_before() {
    let Some(scene) = Scene::new() else { return cannot_run("a C compiler (`cc`)") };
    let harmful =
        format!("{HARMLESS}\tworktree = ..\n\tfsmonitor = \"touch {};:\"\n", scene.mark().display());
    let refs = scene.project.join("X/refs");

    prepare(&scene, &harmful);
    fs::create_dir(&refs).expect("a directory");
    assert!(has_run(&scene), "control: the user's git runs the program in such a repository");

    let session = scene.session("one", &scene.near, Arc::new(Outside::and_names()));
    let command = Command(&scene, &session);
    for way in
        ["mkdir ../p/X/refs", "echo x > ../p/X/refs", "ln ../p/X/other ../p/X/refs", "ln -s . ../p/X/refs"]
    {
        prepare(&scene, HARMLESS);
        let harmless = command.run(way.to_owned());
        prepare(&scene, &harmful);
        let exit = command.run(way.to_owned());
        assert_ne!(exit, Exit::Code(0), "{way}");
        assert!(refs.symlink_metadata().is_err() && !has_run(&scene), "{way}");
        // A link in the place of a part of a repository is refused, whatever surrounds it.
        assert_eq!(harmless == Exit::Code(0), !way.contains("-s"), "control: {way}: {harmless:?}");
    }
    session.close();
}

/// Makes all of a repository but for one part.
fn prepare(scene: &Scene, settings: &str) {
    let directory = scene.project.join("X");
    // The directory may not exist.
    drop(fs::remove_dir_all(&directory));
    fs::create_dir_all(directory.join("objects")).expect("a directory");
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", settings), ("other", "x")] {
        fs::write(directory.join(name), text).expect("written");
    }
}

fn has_run(scene: &Scene) -> bool {
    scene.git(&["-C", "X", "status"]);
    fs::remove_file(scene.mark()).is_ok()
}
