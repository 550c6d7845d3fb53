//! Names that the user's own tools execute: new dot files of a project, start-up files of a home, and targets of
//! the user's links.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Interface, Scene, Serve, User};
use serde_json::{Value, json};

as_each_user!(
    new_dot_files_are_not_written_unasked,
    one_question_covers_a_place,
    start_up_names_of_a_home_are_not_written_unasked,
    what_links_of_the_user_lead_to_is_protected,
);

/// The names in a home directory that start programs, from the product's own table.
const HOME: &str = include_str!("../../../host/exec-surface/data/home.txt");

/// Names of the same kind, listed apart from the product's table, and names that no program has.
const MORE_OF_HOME: &str = ".bash_completion .oh-my-zsh/custom/x.zsh .nvm/nvm.sh .gradle/init.gradle \
    .docker/cli-plugins/docker-x .zlogin .zshenv .kshrc .cshrc .tcshrc .inputrc .xinitrc .xsession .xprofile \
    .Xresources .vimrc .vim/plugin/x.vim .config/nvim/init.lua .emacs .emacs.d/init.el .config/fish/config.fish \
    .config/autostart/x.desktop .config/systemd/user/x.service .local/share/applications/x.desktop .local/bin/x \
    .cargo/config.toml .cargo/bin/x .npmrc .yarnrc .pip/pip.conf .config/pip/pip.conf .pythonrc.py .pdbrc .gdbinit \
    .lldbinit .irbrc .pryrc .Rprofile .julia/config/startup.jl .ghci .sbt/1.0/global.sbt .m2/settings.xml \
    .tmux.conf .screenrc .mailcap .muttrc .config/kitty/kitty.conf .wezterm.lua .config/i3/config \
    .config/sway/config .config/hypr/hyprland.conf .pyenv/shims/x .rbenv/shims/ruby .asdf/asdf.sh \
    .sdkman/bin/sdkman-init.sh .direnvrc .config/direnv/direnvrc .psqlrc .sqliterc .mongorc.js \
    .claude/settings.json .codex/config.toml .cursor/mcp.json .config/Code/User/settings.json .whatever \
    .zz-invented .frobrc .config/frob/startup .frob.d/init .frob/x/y .a .frobrc.d/00-first .local/frob/x \
    .local/share/frob/x.lua .cache-frob/x";

/// The index of the option that allows for this command.
const ONCE: u64 = 0;

/// Ways in which a command changes the content of `.foorc` in the directory `$1`.
const WAYS: &[&str] = &[
    "echo evil > $1/.foorc",
    "echo evil > t && mv t $1/.foorc",
    "echo evil > t && ln t $1/.foorc",
    "echo evil > t && ln -s $PWD/t $1/.foorc",
    "mkdir d && echo evil > d/.foorc && mv d/.foorc $1/",
    "echo evil > t && echo old > o && mv -T t $1/.foorc",
    "mkfifo $1/.foorc",
    "mkdir -p t/x && echo evil > t/x/y && mv t $1/.foorc",
    "perl -e 'open F, \"+>\", \"$ARGV[0]/.FooRC\" or exit 1; print F \"evil\"' $1",
];

/// Changes the content of every name in the file `names`, in place and by renaming; one program does it all, because
/// there are hundreds of names.
const TRY_ALL: &str = "import os
names = open('names').read().splitlines()
for name in names:
    try: os.makedirs(os.path.dirname(name), exist_ok=True)
    except OSError: pass
    try: open(name, 'w').write('evil')
    except OSError: pass
    open('e', 'w').write('evil')
    try: os.rename('e', name)
    except OSError: pass
print('tried', len(names))
";

/// Writes settings with these writable places and these policies.
fn settings(scene: &Scene, allow_write: &Value, policies: &[&str]) -> Result<()> {
    let mut settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": [], "allowRead": ["."], "allowWrite": allow_write, "denyWrite": [] },
    });
    if !policies.is_empty() {
        let policies: Vec<Value> = policies.iter().map(|name| json!({ "use": name })).collect();
        settings.as_object_mut().context("an object")?.insert("policies".to_owned(), json!(policies));
    }
    scene.write(&scene.home().join(".pi/agent/sandbox/default.json"), &settings.to_string())
}

/// Starts a session in `directory`.
fn session(scene: &Scene, directory: &Path, interface: Interface) -> Result<Serve> {
    let mut host = Serve::start(scene, &[], &[])?;
    let mut hello = host.hello(interface);
    hello.as_object_mut().context("an object")?.insert("cwd".to_owned(), json!(directory));
    host.succeed("hello", &hello)?;
    Ok(host)
}

/// Runs a script in `directory` and returns its output.
fn run(host: &mut Serve, directory: &Path, stream: u32, script: &str) -> Result<String> {
    let params = json!({ "callId": format!("c{stream}"), "stream": stream, "script": script, "cwd": directory,
        "env": { "PATH": "/usr/bin:/bin" }, "origin": "agent" });
    host.succeed("exec", &params)?;
    host.output_of(stream)
}

/// Whether the `write` tool may write there; a written file is removed.
fn tool_writes(host: &mut Serve, path: &Path) -> Result<bool> {
    Ok(which_the_tool_writes(host, &[path.to_owned()])?.contains(&true))
}

/// The same for many paths, which are requested without waiting in between.
fn which_the_tool_writes(host: &mut Serve, paths: &[PathBuf]) -> Result<Vec<bool>> {
    /// The number of requests that the host accepts at once.
    const AT_ONCE: usize = 64;
    let mut written = Vec::new();
    for paths in paths.chunks(AT_ONCE) {
        let write = |path| json!({ "callId": "w", "path": path, "content": "evil" });
        let asked =
            paths.iter().map(|path| host.request("file/write", &write(path))).collect::<Result<Vec<_>>>()?;
        for (path, id) in paths.iter().zip(asked) {
            host.reply(id)?;
            let is_written = fs::read_to_string(path).is_ok_and(|text| text == "evil");
            if is_written {
                fs::remove_file(path)?;
            }
            written.push(is_written);
        }
    }
    Ok(written)
}

fn new_dot_files_are_not_written_unasked(user: User) -> Result<()> {
    let make = || -> Result<Scene> {
        let scene = Scene::new(user)?;
        for (name, text) in [(".there", "old"), ("sub/package.json", "{}"), ("plain/x", "")] {
            scene.write(&scene.project().join(name), text)?;
        }
        Ok(scene)
    };
    for way in WAYS {
        let scene = make()?;
        let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
        for place in [".", "sub"] {
            host.run(&format!("set -- {place}; {way}"))?;
            for name in [".foorc", ".FooRC"] {
                let path = scene.project().join(place).join(name);
                ensure!(path.symlink_metadata().is_err(), "{way} in {place}");
                ensure!(!tool_writes(&mut host, &path)?, "the tool write in {place}");
            }
        }
        // Creating the directory on the way does not make the name free.
        host.run("mkdir -p .github/workflows .bundle/plugin; echo evil > .github/workflows/ci.yml; echo evil > .bundle/plugin/x")?;
        for name in [".github/workflows/ci.yml", ".bundle/plugin/x"] {
            ensure!(!scene.project().join(name).exists(), "{name}");
        }
        host.close()?;
        // The control: the same script, without Portcullis.
        let free = make()?;
        let mut control = user.command("/bin/bash".as_ref());
        control.args(["-c", &format!("set -- sub; {way}")]);
        free.enter(&mut control);
        Finished::run(&mut control)?.ended_with(0)?;
        let made = [".foorc", ".FooRC"].map(|name| free.project().join("sub").join(name).symlink_metadata());
        ensure!(made.iter().any(Result::is_ok), "control: {way}");
    }
    ordinary_work_needs_no_question(&make()?)
}

/// Files that existed before, files that a scaffold creates, harmless ones, and ones deeper than a project's root.
fn ordinary_work_needs_no_question(scene: &Scene) -> Result<()> {
    const WORK: &[&str] = &[
        "echo new > .there",
        "echo new > .there.tmp && mv .there.tmp .there",
        "rm .there && echo again > .there",
        "mv .there .away.bak && echo again > .there",
        "mkdir app && echo x > app/.foorc && echo '{}' > app/package.json && echo y > app/.barrc",
        "echo target > .gitignore && echo x > .editorconfig && echo x > .env.example",
        "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm x",
        "git init -q other && echo x > other/.foorc",
        "python3 -m venv --without-pip .venv",
        "mkdir -p .pytest_cache/v .cache/x .next/y && echo x > .pytest_cache/v/.lock && echo x > .cache/x/.y",
        "mkdir -p node_modules/.bin node_modules/.cache && echo x > node_modules/.package-lock.json",
        "mkdir -p .github/ISSUE_TEMPLATE && echo x > .github/ISSUE_TEMPLATE/bug.md",
        "echo x > plain/.note && mkdir -p src/deep && echo x > src/deep/.note",
        "echo x > .tmpAbCdEf && mv .tmpAbCdEf Cargo.lock",
    ];
    let mut host = Serve::greeted(scene, &[], Interface::Absent)?;
    for work in WORK {
        let (_, said) = host.run(&format!("set -e; {work}; echo done"))?;
        ensure!(said.ends_with("done\n"), "{work}: {said}");
    }
    for name in [".there", ".gitignore", ".mailmap", "plain/.other"] {
        let written = host.call(
            "file/write",
            &json!({ "callId": "w", "path": scene.project().join(name), "content": "tool" }),
        )?;
        ensure!(written.get("result").is_some(), "{name}: {written}");
    }
    host.close()?;
    Ok(())
}

fn one_question_covers_a_place(user: User) -> Result<()> {
    const CASES: &[(&str, &[&str])] = &[
        (
            "for n in .arc .brc .crc; do echo x > $n; done; mkdir .drc; echo x > .drc/conf",
            &[".arc", ".brc", ".crc", ".drc/conf"],
        ),
        (
            "mkdir .vscode; echo '{}' > .vscode/tasks.json; echo '{}' > .vscode/settings.json",
            &[".vscode/tasks.json", ".vscode/settings.json"],
        ),
    ];
    for (script, files) in CASES {
        for yes in [true, false] {
            let scene = Scene::new(user)?;
            let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
            let id = host.begin(script, &json!({ "PATH": "/usr/bin:/bin" }))?;
            let question = host.question()?;
            host.answer(&question, &if yes { json!(ONCE) } else { json!("refuse") })?;
            host.finish(id).with_context(|| format!("{script}: a second question"))?;
            for file in *files {
                ensure!(scene.project().join(file).exists() == yes, "{script}: {file}, answered {yes}");
            }
            // The answer was for that command, and a refused name leads to a question again.
            let id = host.begin("echo x > .other", &json!({ "PATH": "/usr/bin:/bin" }))?;
            let question = host.question()?;
            host.answer(&question, &json!("refuse"))?;
            host.finish(id)?;
            ensure!(!scene.project().join(".other").exists());
            host.close()?;
        }
    }
    Ok(())
}

fn home_names() -> Vec<&'static str> {
    let entries = HOME.lines().filter(|line| !line.starts_with("# ") && *line != "#");
    entries.filter_map(|line| Some(line.split_once(" | ")?.0)).collect()
}

/// A home in which half of the names exist: every other one is a file, or a directory with a file in it.
fn start_up_names_of_a_home_are_not_written_unasked(user: User) -> Result<()> {
    let names = home_names();
    ensure!(names.len() >= 158, "{}", names.len());
    let scene = Scene::new(user)?;
    settings(&scene, &json!(["."]), &[])?;
    let home = scene.home();
    // A name that is a directory for its tool may be tried as a file by an attacker.
    let targets: Vec<PathBuf> = names
        .iter()
        .enumerate()
        .map(|(number, name)| home.join(name).join(if number % 2 == 0 { "evil" } else { "" }))
        .map(|path| path.components().collect())
        .chain(MORE_OF_HOME.split_whitespace().map(|name| home.join(name)))
        .collect();
    for (path, name) in targets.iter().zip(&names).step_by(3) {
        let is_there = [".pi", ".ssh", ".gnupg"].iter().any(|own| name.starts_with(own));
        if !is_there && !home.join(name).exists() {
            scene.write(path, "old")?;
        }
    }
    let mut host = session(&scene, &home, Interface::Absent)?;
    let list: String = targets.iter().map(|path| format!("{}\n", path.display())).collect();
    scene.write(&home.join("names"), &list)?;
    scene.write(&home.join("try.py"), TRY_ALL)?;
    let said = run(&mut host, &home, 900, "python3 try.py")?;
    ensure!(said == format!("tried {}\n", targets.len()), "{said}");
    let is_evil = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.trim() == "evil");
    let written: Vec<_> = targets.iter().filter(|path| is_evil(path)).collect();
    ensure!(written.is_empty(), "commands wrote {written:?}");
    let written = which_the_tool_writes(&mut host, &targets)?;
    let written: Vec<_> = targets.iter().zip(written).filter(|(_, is_written)| *is_written).collect();
    ensure!(written.is_empty(), "the tool write: {written:?}");
    for name in ["notes.txt", ".wget-hsts", ".gitignore", "src/p/main.rs"] {
        scene.write(&home.join("src/p/x"), "")?;
        let said = run(&mut host, &home, 901, &format!("echo evil > {name} && echo done"))?;
        ensure!(said == "done\n" && tool_writes(&mut host, &home.join(name))?, "{name}: {said}");
    }
    host.close()?;
    let free = Scene::new(user)?;
    let at = |path: &Path| path.strip_prefix(&home).map(|below| free.home().join(below));
    let list: Vec<_> = targets.iter().map(|path| at(path)).collect::<Result<_, _>>()?;
    let lines: String = list.iter().map(|path| format!("{}\n", path.display())).collect();
    free.write(&free.home().join("names"), &lines)?;
    free.write(&free.home().join("try.py"), TRY_ALL)?;
    let mut control = user.command("/usr/bin/python3".as_ref());
    Finished::run(control.arg("try.py").current_dir(free.home()))?.ended_with(0)?;
    let written = list.iter().filter(|path| is_evil(path)).count();
    // Some names of the table are below others, so they cannot all be written.
    ensure!(written * 10 >= list.len() * 8, "control: {written} of {} are written", list.len());
    executed_without_us(user)
}

/// The control: the tools do execute these files.
fn executed_without_us(user: User) -> Result<()> {
    const CONTROLS: &[(&str, &str, &str)] = &[
        (".bash_profile", "touch ~/RAN", "bash -lc true"),
        (".profile", "touch ~/RAN", "sh -lc true"),
        (".bashrc", "touch ~/RAN", "bash -ic true </dev/null"),
        (".local/lib/pythonVERSION/site-packages/usercustomize.py", "open('RAN', 'w')", "python3 -c 0"),
        (".local/lib/pythonVERSION/site-packages/x.pth", "import os; open('RAN', 'w')", "python3 -c 0"),
        (".gitconfig", "[core]\n\tfsmonitor = touch ~/RAN; false\n", "git init -q w; cd w; git status"),
        (".config/git/config", "[alias]\n\tst = !touch ~/RAN\n", "git st"),
        (".curlrc", "output = RAN", "curl -s file:///etc/hostname"),
    ];
    let scene = Scene::new(user)?;
    let home = scene.home();
    let run = |script: &str| {
        let mut command = user.command("/usr/bin/env".as_ref());
        command.args(["-i", "PATH=/usr/local/bin:/usr/bin:/bin"]).arg(format!("HOME={}", home.display()));
        Finished::run(command.args(["/bin/bash", "-c", script]).current_dir(&home))
    };
    let version = run("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'")?.stdout;
    for (name, text, tool) in CONTROLS {
        let file = home.join(name.replace("VERSION", version.trim()));
        scene.write(&file, text)?;
        run(tool)?;
        ensure!(home.join("RAN").exists(), "control: {tool} does not execute {name}");
        fs::remove_file(home.join("RAN"))?;
        fs::remove_file(file)?;
    }
    Ok(())
}

/// Ways to give content to what a link of the user's leads to; the link first.
const BEHIND_LINKS: &[(&str, &str)] = &[
    (".envrc", "echo evil > env/rc"),
    (".envrc", "echo evil > .envrc"),
    (".envrc", "echo evil > t && mv t env/rc"),
    (".envrc", "mv env old; mkdir env; echo evil > env/rc"),
    (".vscode/tasks.json", "echo evil > tools/editor/tasks.json"),
    (".vscode/tasks.json", "mkdir n; echo evil > n/tasks.json; mv tools/editor old; mv n tools/editor"),
    ("sub/.cargo/config.toml", "mkdir -p none/cargo; echo evil > none/cargo/config.toml"),
    ("out/.envrc", "mkdir -p build/out; echo evil > build/out/.envrc"),
    ("out/.envrc", "mkdir -p n/out; echo evil > n/out/.envrc; mv n build"),
];

fn what_links_of_the_user_lead_to_is_protected(user: User) -> Result<()> {
    let set_up = |scene: &Scene| -> Result<()> {
        for (path, text) in
            [("env/rc", "old"), ("tools/editor/x", "old"), ("sub/x", "old"), ("docs/x", "old")]
        {
            scene.write(&scene.project().join(path), text)?;
        }
        for (name, target) in [
            (".envrc", "env/rc"),
            (".vscode", "tools/editor"),
            ("sub/.cargo", "../none/cargo"),
            ("out", "build/out"),
            ("read.me", "docs/x"),
        ] {
            std::os::unix::fs::symlink(target, scene.project().join(name))?;
        }
        Ok(())
    };
    let is_evil = |scene: &Scene, path: &str| {
        fs::read_to_string(scene.project().join(path)).is_ok_and(|text| text.trim() == "evil")
    };
    for (link, way) in BEHIND_LINKS {
        let free = Scene::new(user)?;
        set_up(&free)?;
        let mut control = user.command("/bin/bash".as_ref());
        control.args(["-c", way]);
        free.enter(&mut control);
        Finished::run(&mut control)?;
        ensure!(is_evil(&free, link), "control: {way}");
    }
    let scene = Scene::new(user)?;
    set_up(&scene)?;
    let mut host = Serve::greeted(&scene, &[], Interface::Absent)?;
    for (link, way) in BEHIND_LINKS {
        host.run(way)?;
        ensure!(!is_evil(&scene, link), "{way}");
        // Restores the files for the next way.
        let put_back = "rm -rf old env tools build none n; mkdir -p env tools/editor; echo old > env/rc; echo old > tools/editor/x";
        let mut outside = user.command("/bin/bash".as_ref());
        outside.args(["-c", put_back]);
        scene.enter(&mut outside);
        Finished::run(&mut outside)?;
    }
    for name in ["env/rc", ".envrc", "tools/editor/tasks.json", "none/cargo/config.toml"] {
        ensure!(!tool_writes(&mut host, &scene.project().join(name))?, "the tool write: {name}");
    }
    for name in ["env/other", "tools/other", "docs/x", "read.me", "none/cargo/other"] {
        scene.write(&scene.project().join("none/cargo/x"), "")?;
        let (_, said) = host.run(&format!("echo evil > {name} && echo done"))?;
        ensure!(said == "done\n" && tool_writes(&mut host, &scene.project().join(name))?, "{name}: {said}");
    }
    host.close()?;
    let mut asking = Serve::greeted(&scene, &[], Interface::Present)?;
    let id = asking.begin("echo evil > env/rc", &json!({ "PATH": "/usr/bin:/bin" }))?;
    let question = asking.question()?;
    ensure!(question.to_string().contains("host.tool-files"), "{question}");
    asking.answer(&question, &json!(ONCE))?;
    asking.finish(id)?;
    ensure!(is_evil(&scene, ".envrc"));
    asking.close()?;
    Ok(())
}
