//! `docs/terminal.svg`, the picture of the README: a terminal with real commands and their output.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use portcullis_it::User;

use super::parse::sections;
use super::run;

/// The session on the picture, as a page has it.
const SESSION: &str = "\
<!-- before
mkdir -p ~/notes; printf 'test:\\n\\t@echo \"3 tests passed\"\\n' > Makefile; echo 'call the bank' > ~/notes/todo.txt
-->
```console
$ portcullis run -- make test
$ portcullis run -- cat ~/notes/todo.txt
> o-4711
$ portcullis check read ~/.ssh/id_ed25519
```
";
const NAME: &str = "terminal.svg";

const LINE: usize = 19;
const MARGIN: usize = 16;
const TITLE: usize = 30;
const WIDTH: usize = 700;
/// At most so many characters are on a line.
const COLUMNS: usize = 80;

as_each_user!(the_picture_shows_what_is_so);

/// `UPDATE_REFERENCE=1` draws it anew.
fn the_picture_shows_what_is_so(user: User) -> Result<()> {
    let all = sections(SESSION)?;
    let parts: Vec<_> = all.iter().collect();
    let mut lines = Vec::new();
    for (command, shown) in all.iter().flat_map(|section| section.commands()).zip(run::run(user, &parts)?) {
        lines.push(format!("$ {}", command.line));
        lines.extend(shown);
    }
    let drawn = svg(&lines);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        return run::rewrite(NAME, &drawn);
    }
    ensure!(run::page(NAME)? == drawn, "docs/{NAME} is behind the program: run this with UPDATE_REFERENCE=1");
    Ok(())
}

/// Draws a terminal with these lines.
fn svg(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().flat_map(|line| broken(line)).collect();
    let height = TITLE + lines.len() * LINE + 2 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-size=\"14\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">\n\
         <title>portcullis run, a question, and portcullis check in a terminal</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#1b1f27\"/>\n"
    );
    for (place, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let _infallible =
            writeln!(text, "<circle cx=\"{}\" cy=\"18\" r=\"5\" fill=\"{colour}\"/>", 20 + place * 18);
    }
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let colour = match line.as_bytes() {
            [b'$', ..] => "#7ee787",
            [b'>', ..] => "#ffd866",
            _ if line.starts_with("  |") || line.starts_with("  rule") => "#8b949e",
            _ => "#e6edf3",
        };
        let below = TITLE + MARGIN + number * LINE + LINE / 2;
        let line = line.replace('&', "&amp;").replace('<', "&lt;");
        let _infallible = writeln!(
            text,
            "<text x=\"{MARGIN}\" y=\"{below}\" fill=\"{colour}\" xml:space=\"preserve\">{line}</text>"
        );
    }
    text + "</svg>\n"
}

/// Breaks a line as a terminal does.
fn broken(line: &str) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let parts: Vec<String> = letters.chunks(COLUMNS).map(|part| part.iter().collect()).collect();
    if parts.is_empty() { vec![String::new()] } else { parts }
}
