//! Completion in real shells: verbs, options, ids, presets and packs.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use portcullis_it::script::say;
use portcullis_it::{Interface, Launch, PiVersion, Scene, Serve, Tools, User, script};
use serde_json::{Value, json};

as_each_user!(bash_completes, zsh_completes, fish_completes);

/// A scene with a question that waits, and a word of each kind that can be completed.
struct Known {
    scene: Scene,
    decision: String,
    /// Pairs of a command line and a word that completing it must offer.
    offers: Vec<(String, String)>,
    /// Keeps the question open.
    _host: Serve,
}

impl Known {
    fn new(user: User) -> Result<Self> {
        let scene = Scene::new(user)?;
        scene.portcullis(&["allow", "ids.test"])?.ended_with(0)?;
        let grant = text_at(&scene, &["grants", "list", "--json"], "/kept/0/id")?;
        let pack = scene.install_pack()?;
        let mut host = Serve::greeted(&scene, &[], Interface::Present)?;
        scene.write(&scene.outside().join("notes"), "x")?;
        let open =
            json!({ "callId": "r", "path": scene.outside().join("notes"), "intent": { "kind": "read" } });
        host.request("file/open", &open)?;
        host.question()?;
        let question = text_at(&scene, &["asks", "list", "--json"], "/questions/0/id")?;
        scene.portcullis(&["run", "--", "true"])?.ended_with(0)?;
        let decision = scene.portcullis(&["audit", "tail", "-n", "2", "--json"])?.ended_with(0)?;
        let decision: Value = serde_json::from_str(decision.stdout.lines().next().context("a record")?)?;
        let decision = decision.get("id").and_then(Value::as_str).context("an id")?.to_owned();
        let offers = [
            ("grants revoke ", grant.as_str()),
            ("asks answer ", &question),
            ("explain ", &decision),
            ("audit show ", &decision),
            ("policy remove ", pack),
            ("allow np", "npm"),
            ("presets show ", "registries"),
            ("grants ", "revoke"),
            ("explain --j", "--json"),
        ];
        let offers =
            offers.map(|(typed, offered)| (format!("portcullis {typed}"), offered.to_owned())).to_vec();
        Ok(Self { scene, decision, offers, _host: host })
    }

    /// Writes the script for a shell.
    fn script(&self, shell: &str) -> Result<PathBuf> {
        let file = self.scene.outside().join(format!("portcullis.{shell}"));
        let script = self.scene.portcullis(&["completions", shell])?.ended_with(0)?;
        self.scene.write(&file, &script.stdout)?;
        Ok(file)
    }

    /// Returns the directory of the program.
    fn programs(&self) -> Result<String> {
        let program = portcullis_it::portcullis(self.scene.user())?;
        Ok(program.parent().context("a directory")?.display().to_string())
    }
}

fn text_at(scene: &Scene, verb: &[&str], pointer: &str) -> Result<String> {
    let value: Value = serde_json::from_str(&scene.portcullis(verb)?.ended_with(0)?.stdout)?;
    let text = value.pointer(pointer).and_then(Value::as_str);
    Ok(text.with_context(|| format!("no {pointer} in {value:#}"))?.to_owned())
}

fn bash_completes(user: User) -> Result<()> {
    const SCRIPT: &str = r#"PATH="$1:$PATH"; . "$2"
COMP_LINE="$3"; COMP_POINT=${#COMP_LINE}; read -ra COMP_WORDS <<< "$3"
[[ "$3" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_portcullis_dynamic portcullis "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}""#;
    let known = Known::new(user)?;
    let (file, programs) = (known.script("bash")?, known.programs()?);
    let complete = |line: &str| -> Result<String> {
        let mut bash = known.scene.program("/bin/bash".as_ref());
        known.scene.enter(&mut bash);
        let output = bash.args(["-c", SCRIPT, "bash", &programs]).arg(&file).arg(line).output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    for (typed, offered) in &known.offers {
        let words = complete(typed)?;
        ensure!(words.lines().any(|word| word == offered), "`{typed}`: no `{offered}` in {words}");
    }
    // bash ends a word at a colon.
    let (log, number) = known.decision.split_once(':').context("LOG:NUMBER")?;
    let words = complete(&format!("portcullis explain {log}:"))?;
    ensure!(words.lines().any(|word| word == number), "{words}");
    ensure!(complete("portcullis allow np")? == "npm\n", "nothing else");
    Ok(())
}

/// `complete -C` prints the words that fish offers for a command line.
fn fish_completes(user: User) -> Result<()> {
    const SCRIPT: &str = r#"test -n "$PORTCULLIS_SHELL_ROOT"
and set fish_function_path $PORTCULLIS_SHELL_ROOT/usr/share/fish/functions
set PATH $argv[1] $PATH
source $argv[2]
complete -C $argv[3]"#;
    let known = Known::new(user)?;
    let fish = Tools::find()?.helper("fish", user)?;
    let (file, programs) = (known.script("fish")?, known.programs()?);
    for (typed, offered) in &known.offers {
        let mut command = known.scene.program(&fish);
        known.scene.enter(&mut command);
        command.args(["--no-config", "-c", SCRIPT, &programs]).arg(&file).arg(typed);
        let output = command.output().with_context(|| format!("starting `{}`", fish.display()))?;
        let (words, errors) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        let is_offered = words.lines().any(|line| line.split('\t').next() == Some(offered));
        ensure!(output.status.success() && errors.is_empty() && is_offered, "`{typed}`: {words}{errors}");
    }
    Ok(())
}

/// zsh has to be typed to: its completion belongs to its editor.
fn zsh_completes(user: User) -> Result<()> {
    /// Finds the shell's own parts where it is not installed.
    const BEFORE: &str = r#"if [[ -n "$PORTCULLIS_SHELL_ROOT" ]]; then
module_path=($PORTCULLIS_SHELL_ROOT/usr/lib/*/zsh/*(/))
fpath=($PORTCULLIS_SHELL_ROOT/usr/share/zsh/functions $PORTCULLIS_SHELL_ROOT/usr/share/zsh/functions/**/*(/N))
fi
"#;
    let known = Known::new(user)?;
    let scene = &known.scene;
    let zsh = Tools::find()?.helper("zsh", user)?;
    let settings = scene.at("zsh");
    scene.write(&settings.join(".zshenv"), BEFORE)?;
    let source = format!(
        "path=('{}' $path)\nPS1='typed: '\nautoload -U compinit && compinit -u -D\nsource '{}'\n\
         unsetopt auto_menu list_ambiguous list_beep\n",
        known.programs()?,
        known.script("zsh")?.display()
    );
    scene.write(&settings.join(".zshrc"), &source)?;
    let start = format!("ZDOTDIR='{}' exec '{}' -d -i", settings.display(), zsh.display());
    let launch = Launch::plain(scene, PiVersion::V1_5, &script([say("never said")]))?;
    let screen = launch.through(["/bin/sh".to_owned(), "-c".to_owned(), start]).screen()?;
    screen.wait_for("typed:")?;
    for (typed, offered) in &known.offers {
        screen.press("C-u")?;
        screen.press("C-l")?;
        screen.wait("an empty line", |text| text.trim() == "typed:")?;
        screen.ask_tmux(&["send-keys", "-l", "--", typed])?;
        screen.wait_for(typed.trim_end())?;
        screen.press("Tab")?;
        screen.wait(&format!("`{offered}` after `{typed}`"), |text| {
            text.split_whitespace().any(|word| word == offered)
        })?;
    }
    Ok(())
}
