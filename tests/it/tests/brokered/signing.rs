//! Signatures of commits and tags with a key that is not inside, checked outside with the user's own programs.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::{Finished, Scene, User};
use serde_json::{Value, json};

use super::{logs, marked, section};

as_each_user!(
    git_signs_by_ssh_without_the_key,
    git_signs_by_gpg_without_the_key,
    only_commits_and_tags_are_signed,
    a_signature_is_a_question_unless_a_rule_says_otherwise,
    a_key_that_cannot_be_used_is_explained,
    a_locked_key_of_gpg_is_explained,
);

/// Makes a repository with a staged file.
pub(super) const BEFORE: &str = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e@x.test GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e@x.test\n\
    git init -q made && cd made && echo one > file && git add file\n";

/// Sends a request to the host by hand: the form, and the file with the object.
const BY_HAND: &str = "ask() { python3 -c 'import os, socket, sys\n\
    form, text = sys.argv[1].encode(), open(sys.argv[2], \"rb\").read()\n\
    there = socket.socket(socket.AF_UNIX)\n\
    there.connect(os.environ[\"PORTCULLIS_SIGNER\"])\n\
    there.sendall(b\"portcullis-sign/1\\0\" + form + b\"\\0%d\\0\" % len(text) + text)\n\
    answer = b\"\"\n\
    while piece := there.recv(65536): answer += piece\n\
    print(answer.decode())' \"$1\" \"$2\"; }\n";

pub(super) fn settings(scene: &Scene, signing: &Value) -> Value {
    json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": { "denyRead": ["~"], "allowRead": [scene.project()], "allowWrite": [scene.project()], "denyWrite": [] },
        "credentials": { "signing": signing },
    })
}

pub(super) fn by_ssh(ask: bool) -> Value {
    json!({ "name": "sign", "form": "ssh", "key": "~/.ssh/signing.pub", "ask": ask })
}

/// Runs a program of the user outside.
pub(super) fn outside(scene: &Scene, program: &str, words: &[&str]) -> Result<Finished> {
    let mut command = scene.user().command(program.as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(words).env("GNUPGHOME", scene.home().join(".gnupg")))
}

pub(super) fn make_key(scene: &Scene, passphrase: &str) -> Result<()> {
    scene.write(&scene.home().join(".ssh/known_hosts"), "")?;
    let key = scene.home().join(".ssh/signing");
    let key = key.to_str().context("a path of text")?;
    outside(
        scene,
        "/usr/bin/ssh-keygen",
        &["-q", "-t", "ed25519", "-N", passphrase, "-C", "e@x.test", "-f", key],
    )?
    .ended_with(0)
    .map(drop)
}

pub(super) fn run(scene: &Scene, signing: &Value, script: &str) -> Result<Finished> {
    let file = scene.at("signing.json");
    scene.write(&file, &settings(scene, signing).to_string())?;
    let file = file.to_str().context("a path of text")?;
    let mut command = scene.portcullis_command(&[
        "run",
        "--ask",
        "deny",
        "--settings",
        file,
        "--",
        "bash",
        "-c",
        script,
    ])?;
    command.env("GNUPGHOME", OsStr::new(&scene.home().join(".gnupg")));
    Finished::run(&mut command)
}

/// Runs git outside, on a copy of the repository with its own settings, to check a signature.
pub(super) fn checked(scene: &Scene, words: &[&str]) -> Result<Finished> {
    let made = scene.project().join("made/.git");
    let allowed = scene.at("allowed");
    let key = fs::read_to_string(scene.home().join(".ssh/signing.pub")).unwrap_or_default();
    scene.write(&allowed, &format!("e@x.test {key}"))?;
    let allowed = format!("gpg.ssh.allowedSignersFile={}", allowed.display());
    let made = format!("--git-dir={}", made.display());
    outside(scene, "git", &[&["-c", &allowed, "-c", "safe.directory=*", &made], words].concat())
}

fn git_signs_by_ssh_without_the_key(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let scripts = [
        "git commit -qm one && git cat-file commit HEAD | grep -c 'BEGIN SSH SIGNATURE'",
        "git -c commit.gpgSign=false commit -q --allow-empty -m plain && git cat-file commit HEAD | grep -c 'BEGIN SSH'",
        "git tag -m release v1 && git tag -m again -s v2 && git cat-file tag v1 | grep -c 'BEGIN SSH SIGNATURE'",
        "git commit -q --allow-empty -m 'last one'",
        "cat ~/.ssh/signing; ls ~/.ssh; env | grep -c 'PRIVATE KEY'",
    ];
    let finished = run(&scene, &by_ssh(false), &(BEFORE.to_owned() + &marked(&scripts)))?;
    ensure!(section(&finished.stdout, 0)?.trim() == "1", "{finished:#?}");
    ensure!(section(&finished.stdout, 1)?.trim() == "0", "the control: {finished:#?}");
    ensure!(section(&finished.stdout, 2)?.trim() == "1", "{finished:#?}");
    let key = section(&finished.stdout, 4)?;
    ensure!(!key.contains("BEGIN OPENSSH") && !key.lines().any(|line| line == "signing"), "{key}");
    for words in
        [["verify-commit", "HEAD"], ["verify-commit", "HEAD~2"], ["verify-tag", "v1"], ["verify-tag", "v2"]]
    {
        let good = checked(&scene, &words)?;
        ensure!(
            good.code() == 0 && good.stderr.contains("Good \"git\" signature for e@x.test"),
            "{words:?}: {good:#?}"
        );
    }
    ensure!(checked(&scene, &["verify-commit", "HEAD~1"])?.code() != 0, "the control");
    let log = logs(&scene)?;
    ensure!(log.contains("the commit is signed with `sign`") && log.contains("last one"), "{log}");
    Ok(())
}

/// Runs the user's own `gpg` outside, with keys in a directory.
fn gpg(scene: &Scene, home: &Path, program: &str, words: &[&str]) -> Result<Finished> {
    let mut command = scene.user().command(program.as_ref());
    scene.enter(&mut command);
    Finished::run(command.args(words).env("GNUPGHOME", home))
}

/// Makes a key for `gpg`, and returns its fingerprint.
pub(super) fn make_gpg_key(scene: &Scene, home: &Path, passphrase: &str) -> Result<String> {
    scene.write(&home.join("gpg.conf"), "")?;
    outside(scene, "/bin/chmod", &["700", home.to_str().context("a path of text")?])?.ended_with(0)?;
    let make = ["--batch", "--pinentry-mode", "loopback", "--passphrase", passphrase, "--quick-gen-key"];
    let key = ["N <e@x.test>", "ed25519", "sign", "never"];
    gpg(scene, home, "/usr/bin/gpg", &[make.as_slice(), &key].concat())?.ended_with(0)?;
    let listed =
        gpg(scene, home, "/usr/bin/gpg", &["--batch", "--with-colons", "--list-keys"])?.ended_with(0)?;
    let line = listed.stdout.lines().find(|line| line.starts_with("fpr:")).context("a fingerprint")?;
    Ok(line.split(':').nth(9).context("a fingerprint")?.to_owned())
}

/// Ends the agent that `gpg` has started.
pub(super) fn end_gpg(scene: &Scene, home: &Path) -> Result<()> {
    gpg(scene, home, "gpgconf", &["--kill", "all"]).map(drop)
}

fn git_signs_by_gpg_without_the_key(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let home = scene.home().join(".gnupg");
    let key = make_gpg_key(&scene, &home, "")?;
    let signing = json!({ "name": "sign", "form": "gpg", "key": key, "ask": false });
    let scripts = [
        "git commit -qm one && git cat-file commit HEAD | grep -c 'BEGIN PGP SIGNATURE'",
        "git tag -m release v1",
        "gpg --batch --list-secret-keys 2>/dev/null | grep -c sec; ls -d ~/.gnupg/private-keys-v1.d",
        "printf 'a contract' | gpg --batch --clearsign; echo \"code $?\"",
    ];
    let finished = run(&scene, &signing, &(BEFORE.to_owned() + &marked(&scripts)));
    let checks = [["verify-commit", "HEAD"], ["verify-tag", "v1"]].map(|words| checked(&scene, &words));
    end_gpg(&scene, &home)?;
    let finished = finished?;
    ensure!(section(&finished.stdout, 0)?.trim() == "1", "{finished:#?}");
    ensure!(section(&finished.stdout, 2)?.starts_with("0\n"), "{finished:#?}");
    ensure!(!section(&finished.stdout, 3)?.contains("code 0"), "{finished:#?}");
    for good in checks {
        let good = good?;
        ensure!(good.code() == 0 && good.stderr.contains("Good signature from"), "{good:#?}");
    }
    Ok(())
}

/// Requests for signatures that are refused, each with a part of the message.
const ATTACKS: &[(&str, &str)] = &[
    ("printf 'a contract' > text; ask ssh text", "only commits and tags"),
    (
        "printf 'certificate version 0.1\\npusher n <e@x.test> 1 +0000\\n\\nx\\n' > text; ask ssh text",
        "only commits and tags",
    ),
    ("git cat-file commit HEAD > signed; ask ssh signed", "only commits and tags"),
    ("( cat commit; printf '\\0' ) > text; ask ssh text", "only commits and tags"),
    ("sed 's/^author/namespace file\\nauthor/' commit > text; ask ssh text", "only commits and tags"),
    ("head -c 300000 /dev/zero | tr '\\0' a > text; ask ssh text", "longer than"),
    ("ask gpg commit", "no such key"),
    ("ask x509 commit", "no such key"),
    ("ask \"$(head -c 60 /dev/zero | tr '\\0' a)\" commit", "a word is missing"),
    ("git tag -s -m release v1", "does not have `tag`"),
    // Messages of the agent's protocol: the list of keys, a signature, an extension, and a lock.
    (
        "for message in '\\x0b' '\\x0d\\0\\0\\0\\0\\0\\0\\0\\x01a\\0\\0\\0\\0' '\\x1b\\0\\0\\0\\x18session-bind@openssh.com' '\\x16\\0\\0\\0\\x01a'; do \
         python3 -c 'import os, socket, sys\n\
         body = eval(\"b\\\"\" + sys.argv[1] + \"\\\"\")\n\
         there = socket.socket(socket.AF_UNIX); there.connect(os.environ[\"PORTCULLIS_SIGNER\"])\n\
         there.sendall(len(body).to_bytes(4, \"big\") + body); there.shutdown(socket.SHUT_WR)\n\
         print(there.recv(999))' \"$message\"; done",
        "the request cannot be read",
    ),
    ("cp commit text; SSH_AUTH_SOCK=$PORTCULLIS_SIGNER ssh-add -l 2>/dev/null | grep -c SHA256", "0"),
    ("cp commit text; ssh-keygen -Y sign -n file -f ~/.ssh/signing.pub text; ls text.sig", ""),
    (
        "cp commit text; $(git config gpg.ssh.program) -Y sign -n file -f ~/.ssh/signing.pub text; ls text.sig",
        "",
    ),
    (
        "printf 'a contract' > text; $(git config gpg.ssh.program) -Y sign -n git -f x text; ls text.sig",
        "only commits and tags",
    ),
];

fn only_commits_and_tags_are_signed(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let mut signing = by_ssh(false);
    signing["for"] = json!(["commit"]);
    let controls = [
        "ask ssh commit",
        "cp commit text; $(git config gpg.ssh.program) -Y sign -n git -f x text; ls text.sig",
    ];
    let scripts: Vec<&str> = ATTACKS.iter().map(|(script, _)| *script).chain(controls).collect();
    let prepare = "git commit -qm one; git cat-file commit HEAD | sed '/^gpgsig/,/END SSH/d' > commit\n";
    let finished = run(&scene, &signing, &(BEFORE.to_owned() + BY_HAND + prepare + &marked(&scripts)))?;
    for (number, (script, wanted)) in ATTACKS.iter().enumerate() {
        let output = section(&finished.stdout, number).with_context(|| format!("{finished:#?}"))?;
        let is_signed =
            output.contains("SSH SIGNATURE") || output.contains("Good") || output.contains("text.sig\n");
        ensure!(
            !is_signed && format!("{output}{}", finished.stderr).contains(wanted),
            "{script}: {output}\n{}",
            finished.stderr
        );
    }
    let control = section(&finished.stdout, ATTACKS.len())?;
    ensure!(control.contains("BEGIN SSH SIGNATURE"), "the control: {finished:#?}");
    // The signature is one of git, and of no file.
    let signature = fs::read_to_string(scene.project().join("made/text.sig"))?;
    ensure!(signature.contains("BEGIN SSH SIGNATURE"), "{signature}");
    let commit = scene.project().join("made/commit");
    let check = |namespace: &str| {
        let script = format!(
            "/usr/bin/ssh-keygen -Y check-novalidate -n {namespace} -s '{}/text.sig' < '{}'",
            scene.project().join("made").display(),
            commit.display()
        );
        outside(&scene, "/bin/sh", &["-c", &script])
    };
    ensure!(check("git")?.code() == 0 && check("file")?.code() != 0);
    Ok(())
}

fn a_signature_is_a_question_unless_a_rule_says_otherwise(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "")?;
    let commit = BEFORE.to_owned() + &marked(&["git commit -qm one 2>&1; git log --oneline | wc -l"]);
    let asked = run(&scene, &by_ssh(true), &commit)?;
    let said = section(&asked.stdout, 0)?;
    ensure!(said.contains("not signed") && said.lines().any(|line| line.trim() == "0"), "{asked:#?}");
    fs::remove_dir_all(scene.project().join("made"))?;
    let control = run(&scene, &by_ssh(false), &commit)?;
    ensure!(section(&control.stdout, 0)?.trim() == "1", "the control: {control:#?}");
    Ok(())
}

fn a_key_that_cannot_be_used_is_explained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    make_key(&scene, "a passphrase")?;
    let script = BEFORE.to_owned() + &marked(&["git commit -qm one 2>&1"]);
    let locked = run(&scene, &by_ssh(false), &script)?;
    ensure!(section(&locked.stdout, 0)?.contains("unlock the key outside with `ssh-add`"), "{locked:#?}");
    let elsewhere =
        json!({ "name": "sign", "form": "ssh", "key": scene.project().join("key.pub"), "ask": false });
    fs::copy(scene.home().join(".ssh/signing.pub"), scene.project().join("key.pub"))?;
    fs::remove_dir_all(scene.project().join("made"))?;
    let own = run(&scene, &elsewhere, &script)?;
    let said = format!("{}{}", own.stdout, own.stderr);
    ensure!(said.contains("lies where commands can write"), "{own:#?}");
    ensure!(!said.contains("BEGIN SSH SIGNATURE"), "{own:#?}");
    Ok(())
}

/// The control is the commit with an unlocked key.
fn a_locked_key_of_gpg_is_explained(user: User) -> Result<()> {
    let scene = Scene::new(user)?;
    let home = scene.home().join(".gnupg");
    let key = make_gpg_key(&scene, &home, "a passphrase")?;
    end_gpg(&scene, &home)?;
    let signing = json!({ "name": "sign", "form": "gpg", "key": key, "ask": false });
    let script =
        BEFORE.to_owned() + &marked(&["git commit -qm one 2>&1; git log --oneline 2>/dev/null | wc -l"]);
    let locked = run(&scene, &signing, &script);
    end_gpg(&scene, &home)?;
    let locked = locked?;
    let said = section(&locked.stdout, 0)?;
    ensure!(said.contains("unlock the key outside, for example with `echo"), "{said}");
    ensure!(said.trim().ends_with("\n0"), "{said}");
    fs::remove_dir_all(scene.project().join("made"))?;
    fs::remove_dir_all(&home)?;
    let signing =
        json!({ "name": "sign", "form": "gpg", "key": make_gpg_key(&scene, &home, "")?, "ask": false });
    let control = run(&scene, &signing, &script);
    end_gpg(&scene, &home)?;
    let control = control?;
    ensure!(section(&control.stdout, 0)?.trim() == "1", "the control: {control:#?}");
    Ok(())
}
