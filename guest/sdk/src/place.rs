//! Places as people write them: `~/.ssh`, `.`, `./sub`, `/srv`.

use crate::Context;

impl Context {
    /// Returns the absolute form of a place: `~` is the home directory, `.` and relative paths start from the directory
    /// where the agent was started; `.` and `..` are resolved. `None` if the context lacks the directory.
    pub fn absolute(&self, place: &str) -> Option<String> {
        let (top, rest) = match place.split_once('/').unwrap_or((place, "")) {
            ("", _) => ("", place),
            ("~", rest) => (self.machine.home.as_str(), rest),
            (".", rest) => (self.cwd(), rest),
            _ => (self.cwd(), place),
        };
        if top.is_empty() && !place.starts_with('/') {
            return None;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in top.split('/').chain(rest.split('/')) {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        Some(format!("/{}", parts.join("/")))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn places() {
        let context = crate::testing::context("/srv/app");
        for (entry, expected) in [
            ("~/.ssh", "/home/u/.ssh"),
            ("~", "/home/u"),
            (".", "/srv/app"),
            ("./a/../b", "/srv/app/b"),
            ("sub", "/srv/app/sub"),
            ("/tmp/", "/tmp"),
            ("/", "/"),
            ("..", "/srv"),
        ] {
            assert_eq!(context.absolute(entry).as_deref(), Some(expected), "{entry}");
        }
        let mut nowhere = context;
        nowhere.workspace.roots.clear();
        assert_eq!(nowhere.absolute("."), None);
    }
}
