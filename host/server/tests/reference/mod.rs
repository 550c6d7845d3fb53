//! Files that are generated from the program: pages of the documentation, and input for the extension's tests.

/// Compares a generated file, or writes it where `UPDATE_REFERENCE` is set.
pub(crate) fn is_up_to_date(path: &str, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|known| known == text) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_REFERENCE").is_some(),
        "`{path}` is not what the program says now: run this test with UPDATE_REFERENCE=1"
    );
    std::fs::write(path, text).unwrap();
}
