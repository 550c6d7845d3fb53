//! Places as people write them: `~/.ssh`, `.`, `./sub`, `/srv`.

use portcullis_sdk::Context;

/// The absolute form of an entry; none where the context lacks what it stands on.
pub(crate) fn absolute(entry: &str, context: &Context) -> Option<String> {
    let (top, rest) = match entry.split_once('/').unwrap_or((entry, "")) {
        ("", _) => ("", entry),
        ("~", rest) => (context.machine.home.as_str(), rest),
        (".", rest) => (context.cwd(), rest),
        _ => (context.cwd(), entry),
    };
    if top.is_empty() && !entry.starts_with('/') {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let context = portcullis_sdk::testing::context("/srv/app");
        for (entry, expected) in [
            ("~/.ssh", "/home/u/.ssh"),
            ("~", "/home/u"),
            (".", "/srv/app"),
            ("./a/../b", "/srv/app/b"),
            ("sub", "/srv/app/sub"),
            ("/tmp/", "/tmp"),
            ("/", "/"),
        ] {
            assert_eq!(absolute(entry, &context).as_deref(), Some(expected), "{entry}");
        }
        let mut nowhere = context;
        nowhere.workspace.roots.clear();
        assert_eq!(absolute(".", &nowhere), None);
    }
}
