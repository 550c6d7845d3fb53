//! The races: operations of a command that make a tool's harmless file harmful.

/// One kind of race.
pub(crate) struct RaceKind {
    pub(crate) name: &'static str,
    /// The preparation of the command; see `attack.c`.
    pub(crate) prepares: &'static str,
    /// The directory that it watches.
    pub(crate) watches: &'static str,
    /// The attack, after the event.
    pub(crate) does: &'static [&'static str],
    /// The path that the tool writes.
    pub(crate) writes: &'static str,
    /// The path at which the file is harmful.
    pub(crate) harms: &'static str,
    pub(crate) content: Content,
    /// The directory in which the user's git runs the program that the file names.
    pub(crate) runs_in: Option<&'static str>,
}

impl RaceKind {
    /// Returns true if a command may create the file with another content first.
    pub(crate) fn may_be_edited(&self) -> bool {
        matches!(self.content, Content::Text(..))
    }

    /// Returns true if the file does not move: its surroundings change its meaning.
    pub(crate) fn is_completed(&self) -> bool {
        self.writes == self.harms
    }
}

/// The content that the tool writes. `MARK` in it stands for a file that is created when a program has run.
pub(crate) enum Content {
    /// Harmful by name, with any content.
    Any,
    /// Harmful by content. Longer files are filled with lines like the second text.
    Text(&'static str, &'static str),
    /// Harmful by content, which is complete.
    Exact(&'static str),
}

/// Git settings of a module with the working tree `sub`, which name a program.
const MODULE: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ../../../sub\n\t\
                      fsmonitor = \"touch MARK;:\"\n";
const SETTINGS: Content = Content::Text("[core]\n\tbare = false\n\tfsmonitor = \"touch MARK;:\"\n", "#");
/// The same for a repository inside its working tree, in a directory not named `.git`.
const INSIDE: Content = Content::Text(
    "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"touch MARK;:\"\n",
    "#",
);
/// An index with which git writes a hook on checkout.
const INDEX: Content = Content::Text(
    concat!(
        "DIRC\0\0\0\x02\0\0\0\x01",
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        "aaaaaaaaaaaaaaaaaaaa\0\x18.git/hooks/post-checkout\0\0"
    ),
    "#",
);

const fn renamed(
    name: &'static str,
    does: &'static [&'static str],
    (writes, harms): (&'static str, &'static str),
    content: Content,
) -> RaceKind {
    RaceKind { name, prepares: "w/", watches: "w", does, writes, harms, content, runs_in: None }
}

/// The directory has all parts of a repository but `X/refs`.
const fn completed(
    name: &'static str,
    (prepares, watches): (&'static str, &'static str),
    writes: &'static str,
    content: Content,
) -> RaceKind {
    RaceKind {
        name,
        prepares,
        watches,
        does: &["mkdir", "X/refs"],
        writes,
        harms: writes,
        content,
        runs_in: None,
    }
}

pub(crate) const KINDS: &[RaceKind] = &[
    renamed(
        "renamed to .pi",
        &["rename", "w", ".pi"],
        ("w/settings.json", ".pi/settings.json"),
        Content::Any,
    ),
    RaceKind {
        runs_in: Some("q"),
        ..renamed("renamed to .git", &["rename", "w", "q/.git"], ("w/config", "q/.git/config"), SETTINGS)
    },
    renamed("renamed to .hg", &["rename", "w", ".hg"], ("w/hgrc", ".hg/hgrc"), Content::Any),
    renamed(
        "renamed to .cargo",
        &["rename", "w", ".cargo"],
        ("w/config.toml", ".cargo/config.toml"),
        Content::Any,
    ),
    renamed(
        "renamed to .yarn",
        &["rename", "w", ".yarn"],
        ("w/releases/yarn.cjs", ".yarn/releases/yarn.cjs"),
        Content::Any,
    ),
    RaceKind {
        runs_in: Some("X"),
        ..completed("completed: config", ("X/,X/HEAD,X/objects/", "X"), "X/config", INSIDE)
    },
    RaceKind {
        name: "completed: config of a module",
        prepares: ".git/modules/,.git/modules/x/,.git/modules/x/HEAD,.git/modules/x/objects/",
        watches: ".git/modules/x",
        does: &["mkdir", ".git/modules/x/refs"],
        writes: ".git/modules/x/config",
        harms: ".git/modules/x/config",
        content: Content::Text(MODULE, "#"),
        runs_in: Some("."),
    },
    completed(
        "completed: a hook",
        ("X/,X/HEAD,X/objects/,X/hooks/", "X"),
        "X/hooks/pre-commit",
        Content::Any,
    ),
    completed(
        "completed: attributes",
        ("X/,X/HEAD,X/objects/,X/info/", "X/info"),
        "X/info/attributes",
        Content::Text("* filter=evil\n", "#"),
    ),
    RaceKind {
        runs_in: Some("X"),
        ..completed(
            "completed: config.worktree",
            ("X/,X/HEAD,X/objects/,X/config+", "X"),
            "X/config.worktree",
            INSIDE,
        )
    },
    completed(
        "completed: gitdir of a worktree",
        ("X/,X/HEAD,X/objects/,X/worktrees/,X/worktrees/a/", "X/worktrees/a"),
        "X/worktrees/a/gitdir",
        Content::Text("/etc/evil/.git\n", "/etc/evil/.git"),
    ),
    completed(
        "completed: strategy of a rebase",
        ("X/,X/HEAD,X/objects/,X/rebase-merge/", "X/rebase-merge"),
        "X/rebase-merge/strategy",
        Content::Text("./evil\n", "./evil"),
    ),
    completed(
        "completed: options of a sequence",
        ("X/,X/HEAD,X/objects/,X/sequencer/", "X/sequencer"),
        "X/sequencer/opts",
        Content::Text("[options]\n\tstrategy = ./evil\n", "#"),
    ),
    completed(
        "completed: strategy options of a rebase",
        ("X/,X/HEAD,X/objects/,X/rebase-merge/", "X/rebase-merge"),
        "X/rebase-merge/strategy_opts",
        Content::Text("--index-output=../.envrc\n", "--index-output=../.envrc"),
    ),
    completed(
        "completed: options of patches",
        ("X/,X/HEAD,X/objects/,X/rebase-apply/", "X/rebase-apply"),
        "X/rebase-apply/apply-opt",
        Content::Text("--build-fake-ancestor=../.envrc\n", "--build-fake-ancestor=../.envrc"),
    ),
    completed("completed: index", ("X/,X/HEAD,X/objects/", "X"), "X/index", INDEX),
    // `commondir` is judged at any path, so it must become harmful by a move. (The list of a rebase is judged at any
    // path too, and only by its content, so no race can make it harmful.)
    RaceKind {
        name: "moved out of its repository: commondir",
        prepares: "q/.git/,q/.git/worktrees/,q/.git/worktrees/a/",
        watches: "q/.git/worktrees/a",
        does: &["rename", "q/.git/worktrees/a", "v"],
        writes: "q/.git/worktrees/a/commondir",
        harms: "v/commondir",
        content: Content::Exact("../..\n"),
        runs_in: None,
    },
    RaceKind {
        prepares: "w/,X/,X/HEAD,X/objects/,X/refs/",
        ..renamed(
            "renamed into a repository: alternates",
            &["rename", "w", "X/objects/info"],
            ("w/alternates", "X/objects/info/alternates"),
            Content::Text("/etc/evil/objects\n", "/etc/evil/objects"),
        )
    },
];
