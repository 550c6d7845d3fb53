//! The surroundings of names, on which the rulings about them depend.

use std::path::Path;

use portcullis_exec_surface::Site;

/// The surroundings of the names of a request.
pub struct Surroundings<'a> {
    /// The directories, links and files around the names.
    pub site: Site<'a>,
    /// Ids of the rules that the user has lifted.
    pub lifted: &'a [String],
    /// Returns true if only this session sees a path.
    pub is_private: &'a dyn Fn(&Path) -> bool,
}

impl Surroundings<'_> {
    /// Returns true if the user has lifted a rule.
    pub(super) fn is_lifted(&self, rule: &str) -> bool {
        self.lifted.iter().any(|lifted| lifted == rule)
    }

    /// Returns the same site without the files in it.
    pub(super) fn bare_site(&self) -> Site<'_> {
        let nothing = &|_: &Path| false;
        Site { exists: nothing, is_link: nothing, was_there: nothing, ..self.site }
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Surroundings").field("site", &self.site).finish_non_exhaustive()
    }
}
