use super::*;

/// Returns the circles in these files, each described.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &Path| {
        let (_, text) = files.iter().find(|(name, _)| Path::new(name) == path)?;
        Some((*text).to_owned())
    };
    let imports = Modules::read(Path::new("src/lib.rs"), &read).unwrap().imports();
    circles(&imports).iter().map(|circle| describe(&imports, circle)).collect()
}

#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(circles_of(files), expected);
}

#[test]
fn a_circle_through_use() {
    let lib = ("src/lib.rs", "mod a; mod b;");
    let b = ("src/b.rs", "use super::a; pub struct B;");
    check(
        &[lib, ("src/a.rs", "use crate::b::{B as Other};"), b],
        &["2 files import each other: src/a.rs takes `B` from src/b.rs, src/b.rs takes `a` from src/a.rs"],
    );
    check(&[lib, ("src/a.rs", "pub struct A;"), b], &[]);
}

#[test]
fn a_circle_through_paths() {
    let lib = ("src/lib.rs", "mod a; mod b; fn f() { a::f() }");
    let b = ("src/b.rs", "pub fn f() {}");
    check(&[lib, ("src/a.rs", "pub fn f() { crate::b::f() }"), b], &[]);
    for text in [
        "pub fn f() { crate::g() }",
        "pub fn f() { println!(\"{}\", [(1, crate::G)].len()) }",
        "#[command(after_help = super::HELP)] pub struct S;",
        "pub fn f(_: Vec<super::T>) {}",
    ] {
        let found = circles_of(&[lib, ("src/a.rs", text), b]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
}

#[test]
fn a_longer_circle_by_its_shortest_way() {
    check(
        &[
            ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "use crate::c::C;"),
            ("src/c.rs", "use crate::a::A; use crate::d::D;"),
            ("src/d.rs", "use crate::c::C;"),
        ],
        &["4 files import each other: src/c.rs takes `D` from src/d.rs, src/d.rs takes `C` from src/c.rs"],
    );
}

#[test]
fn re_exports_count_for_the_file_that_defines_the_name() {
    let (one, two) = (("src/a.rs", "pub struct A;"), ("src/b.rs", "use crate::A;"));
    check(&[("src/lib.rs", "mod a; mod b; pub use a::A; pub use b::f;"), one, two], &[]);
    check(&[("src/lib.rs", "mod a; mod b; pub use a::*; pub use b::f;"), one, two], &[]);
    check(
        &[("src/lib.rs", "mod a; mod b; pub use a::A; pub use b::f;"), ("src/a.rs", "use crate::f;"), two],
        &["2 files import each other: src/a.rs takes `f` from src/b.rs, src/b.rs takes `A` from src/a.rs"],
    );
    // What a macro defines cannot be seen, so the file of the macro counts.
    let made = ("src/a.rs", "bindings!();");
    check(&[("src/lib.rs", "mod a; mod b; pub use a::*; pub use b::f;"), made, two], &[]);
}

#[test]
fn names_are_followed_through_imported_modules() {
    check(
        &[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a/mod.rs", "pub mod deep; use crate::b::B;"),
            ("src/a/deep.rs", "pub fn f() {}"),
            ("src/b.rs", "use crate::a::deep; pub fn g() { deep::f() }"),
        ],
        &[],
    );
    check(
        &[
            ("src/lib.rs", "#[path = \"x/y.rs\"] mod a; mod b { pub mod c; }"),
            ("src/x/y.rs", "use crate::b::c::C;"),
            ("src/b/c.rs", "pub fn f() { super::super::a::f() }"),
        ],
        &[
            "2 files import each other: src/b/c.rs takes `f` from src/x/y.rs, src/x/y.rs takes `C` from src/b/c.rs",
        ],
    );
}

#[test]
fn tests_visibilities_and_other_crates_are_no_imports() {
    for text in [
        "#[cfg(test)] mod tests { use super::*; fn f() { crate::f() } }",
        "#[cfg(all(test, unix))] use crate::f;",
        "impl A { #[cfg(test)] fn f() { crate::f() } }",
        "pub(crate) fn f() {} pub(in crate::b) fn g() {}",
        "use serde::f; use f::f; fn g() { f::f(); std::f() }",
        "fn f() { Self::f() }",
    ] {
        check(&[("src/lib.rs", "mod a; fn f() { a::g() }"), ("src/a.rs", text)], &[]);
    }
}
