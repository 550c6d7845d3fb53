//! Builds, tests, packages and editors leave and print the same inside as outside.

use std::fs;
use std::process::{Command, Stdio};

use portcullis_sandbox_runtime::Exit;

use crate::kit::Session;
use crate::{Test, cannot_run, exists};

pub(crate) const TESTS: &[Test] = &[
    ("builds::cargo_builds_and_tests", cargo_builds_and_tests),
    ("builds::npm_installs_from_a_registry", npm_installs_from_a_registry),
    ("builds::tests_have_processes_and_terminals", tests_have_processes_and_terminals),
    ("builds::editors_save", editors_save),
    ("builds::python_has_environments", python_has_environments),
    ("builds::git_and_tar_leave_the_same", git_and_tar_leave_the_same),
];

/// Runs a script inside and outside, each in a directory of its own, and compares the outputs. `$TOOLS` is a directory
/// of programs.
#[track_caller]
fn same(session: &Session, tools: &str, script: &str) -> String {
    let script = format!(
        "set -e; exec 2>&1; export PATH=\"$TOOLS:/usr/bin:/bin\" HOME=\"$PWD/home\" LC_ALL=C; mkdir home; {script}"
    );
    let run = |name: &str| {
        fs::create_dir(session.path("work").join(name)).expect("a directory");
        session.path("work").join(name)
    };
    let mut command = session.command(&["sh", "-c", &script]);
    command.cwd = run("inside");
    command.env.push(("TOOLS".into(), tools.into()));
    let inside = session.run(command).expect("sh starts");
    let outside = Command::new("sh")
        .args(["-c", &script])
        .current_dir(run("outside"))
        .env_clear()
        .env("TOOLS", tools)
        .env("P", session.place.path())
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    let outside_says = String::from_utf8_lossy(&outside.stdout).into_owned();
    assert!(outside.status.success(), "control: {outside_says}");
    assert_eq!((inside.exit, inside.output.as_str()), (Exit::Code(0), outside_says.as_str()));
    inside.output
}

/// Lists a directory with types, modes and contents.
const LIST: &str = "list() { (cd \"$1\" && find . -printf '%y %m %P %l\\n' | sort && \
                    find . -type f -print0 | sort -z | xargs -0r sha256sum); };";

fn cargo_builds_and_tests() {
    // A rustup proxy would look for its own home.
    let found = Command::new("rustc").args(["--print", "sysroot"]).stderr(Stdio::null()).output();
    let sysroot = found.ok().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let tools = sysroot.map(|sysroot| format!("{sysroot}/bin"));
    let Some(tools) = tools.filter(|tools| exists(&format!("{tools}/cargo"))) else {
        // The toolchain of a machine that builds as root belongs to root.
        return println!("    not for this user: cargo is not to be reached");
    };
    let session = Session::new();
    let said = same(
        &session,
        &tools,
        "mkdir -p c/src c/tests; cd c; \
         printf '[package]\\nname = \"c\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[workspace]\\n' > Cargo.toml; \
         echo 'fn main() { println!(\"cargo:rustc-env=BUILT=yes\"); }' > build.rs; \
         echo 'pub fn f() -> &'\"'\"'static str { env!(\"BUILT\") }' > src/lib.rs; \
         echo 'fn main() { println!(\"{}\", c::f()); }' > src/main.rs; \
         echo '#[test] fn runs() { let out = std::process::Command::new(env!(\"CARGO_BIN_EXE_c\")).output().unwrap(); \
         assert_eq!(out.stdout, b\"yes\\n\"); }' > tests/t.rs; \
         export CARGO_HOME=\"$HOME/cargo\" CARGO_TARGET_DIR=\"$PWD/target\" RUSTC_WRAPPER=; \
         cargo build --offline -q; target/debug/c; cargo test --offline -q | grep -c 'test result: ok. 1 passed'; \
         echo '// changed' >> src/lib.rs; cargo build --offline -q; target/debug/c; cargo clean -q; ls",
    );
    assert!(said.starts_with("yes\n1\nyes\n"), "{said}");
}

fn npm_installs_from_a_registry() {
    if !exists("/usr/bin/npm") {
        return cannot_run("npm");
    }
    let session = Session::new();
    fs::write(session.path("work/registry.js"), include_str!("registry.js")).expect("written");
    let said = same(
        &session,
        "/usr/bin",
        "mkdir left right project; \
         echo '{\"name\":\"left\",\"version\":\"1.0.0\",\"main\":\"i.js\",\"bin\":{\"left\":\"i.js\"},\
         \"dependencies\":{\"right\":\"^2.0.0\"}}' > left/package.json; \
         printf '#!/usr/bin/env node\\nconsole.log(\"left and \" + require(\"right\"));\\n' > left/i.js; \
         echo '{\"name\":\"right\",\"version\":\"2.1.0\",\"scripts\":{\"postinstall\":\"echo ran > ran\"}}' > right/package.json; \
         echo 'module.exports = \"right\";' > right/index.js; \
         (cd left && npm pack -s > /dev/null); (cd right && npm pack -s > /dev/null); \
         node ../registry.js port left/left-1.0.0.tgz right/right-2.1.0.tgz & server=$!; \
         while ! test -s port; do sleep 0.05; done; cd project; echo '{}' > package.json; \
         npm install --no-audit --no-fund --no-update-notifier --loglevel=error \
         --registry \"http://127.0.0.1:$(cat ../port)\" left | sed 's/ in .*//'; \
         kill $server; npx --no-install left; cat node_modules/right/ran; ls node_modules; readlink node_modules/.bin/left",
    );
    assert!(said.contains("left and right\nran\n"), "{said}");
}

fn tests_have_processes_and_terminals() {
    let session = Session::new();
    let tests = "
import os, pty, signal, subprocess, sys, tempfile, threading, unittest
class Tests(unittest.TestCase):
    def test_processes(self):
        out = subprocess.run('cat; exit 3', shell=True, input=b'in', capture_output=True)
        self.assertEqual((out.stdout, out.returncode), (b'in', 3))
    def test_signals(self):
        child = subprocess.Popen(['sleep', '60']); child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(), -15)
    def test_terminal(self):
        pid, fd = pty.fork()
        if pid == 0: os.execvp('sh', ['sh', '-c', 'test -t 0 && stty size && read x < /dev/tty && echo got $x'])
        os.write(fd, b'typed\\n'); said = b''
        try:
            while True: said += os.read(fd, 100)
        except OSError: pass
        self.assertEqual(os.waitpid(pid, 0)[1], 0); self.assertIn(b'got typed', said)
    def test_many(self):
        def run(): self.assertEqual(subprocess.call(['true']), 0)
        threads = [threading.Thread(target=run) for _ in range(16)]
        [t.start() for t in threads]; [t.join() for t in threads]
    def test_files(self):
        with tempfile.TemporaryDirectory() as place, tempfile.NamedTemporaryFile(dir=place) as file:
            file.write(b'x'); file.flush(); self.assertEqual(os.stat(file.name).st_size, 1)
";
    fs::write(session.path("work/suite.py"), tests).expect("written");
    let said = same(
        &session,
        "/usr/bin",
        "python3 ../suite.py -v < /dev/null | cat; \
         cp ../suite.py test_suite.py; python3 -m unittest -v 2>&1 | sed 's/ in [0-9.]*s//' | sort",
    );
    assert!(said.contains("Ran 5 tests\n") && said.contains("OK\n"), "{said}");
}

fn editors_save() {
    let session = Session::new();
    let vim = if exists("/usr/bin/vim") {
        "for copy in yes no auto; do vim -u NONE -es -c \"set backup backupcopy=$copy\" -c 'normal Ovim' -c wq f; done;"
    } else {
        ""
    };
    same(
        &session,
        "/usr/bin",
        &format!(
            "{LIST} mkdir e; cd e; echo text > f; chmod 640 f; {vim} sed -i s/text/sed/ f; perl -pi -e 's/sed/perl/' f; \
             python3 -c 'import os, tempfile; d, n = tempfile.mkstemp(dir=\".\"); os.write(d, open(\"f\", \"rb\").read() + b\"new\"); \
             os.fchmod(d, 0o640); os.fsync(d); os.close(d); os.replace(n, \"f\"); os.sync()'; \
             cp f .f.swp; ln f f.bak; echo more >> .f.swp; mv -f .f.swp f; ln -s f l; echo x > l; list .",
        ),
    );
}

fn python_has_environments() {
    let session = Session::new();
    same(
        &session,
        "/usr/bin",
        "python3 -m venv --without-pip v; mkdir m; echo 'x = 5' > m/mod.py; \
         (here=$PWD; cd v/lib/python3*/site-packages && echo \"$here/m\" > m.pth); v/bin/python -c 'import mod, sys; \
         print(mod.x, sys.prefix != sys.base_prefix)'; . v/bin/activate; command -v python | sed 's#.*/v/#v/#'; \
         find v m -name __pycache__ -prune -o -printf '%y %m %P\\n' | sort",
    );
}

fn git_and_tar_leave_the_same() {
    let session = Session::new();
    same(
        &session,
        "/usr/bin",
        &format!(
            "{LIST} export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b \
             GIT_AUTHOR_DATE='2001-01-01T00:00Z' GIT_COMMITTER_DATE='2001-01-01T00:00Z'; \
             git init -q -b main r; cd r; for i in 1 2 3; do mkdir d$i; echo $i > d$i/f; chmod 755 d$i/f; ln -s f d$i/l; \
             git add .; git commit -q -m $i; done; git checkout -q -b side HEAD~1; echo s > s; git add s; git commit -q -m s; \
             git rebase -q main; git worktree add -q ../tree HEAD~1; git clone -q . ../clone; \
             git -C ../clone -c protocol.file.allow=always submodule --quiet add \"$PWD\" sub; \
             git log --format=%H; git -C ../tree status --porcelain; git -C ../clone rev-parse HEAD:; cd ..; \
             tar cf t.tar -C r --exclude .git .; mkdir t; tar xf t.tar -C t; list t; list clone/sub/d1",
        ),
    );
}
