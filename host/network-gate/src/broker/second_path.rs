//! Requests that name a second path besides their own, which no rule for paths has judged.
//!
//! The server copies from that path, moves a file to it, or shows its content. The gate passes such a request on only if
//! the rules permit every path.

use hyper::http::request::Parts;

use super::well_formed::percent_decoded;

/// Headers that name a path, host or object of their own: of WebDAV, and of OpenStack's store.
const HEADERS: &[&str] = &["destination", "x-object-manifest"];
/// Parts of the names of such headers, which each store of objects begins with its own prefix. Some stores also take
/// them from the query.
const PARTS: &[&str] = &["copy-from", "copy-source", "move-source", "rename-source", "symlink-target"];
/// The parameters by which a registry of containers takes a layer from another repository.
const MOUNT: [&str; 2] = ["mount", "from"];

/// Returns the header or parameter that names a second path.
pub(super) fn second_path(request: &Parts) -> Option<String> {
    let is_one = |name: &str| HEADERS.contains(&name) || PARTS.iter().any(|part| name.contains(part));
    // Servers that hand headers on as variables read `_` and `-` as one.
    let mut headers = request.headers.keys().map(|name| name.as_str().replace('_', "-"));
    headers.find(|name| is_one(name)).or_else(|| {
        let names: Vec<String> = parameters(request).collect();
        let is_mount = MOUNT.iter().all(|wanted| names.iter().any(|name| name == wanted));
        let part = names.into_iter().find(|name| PARTS.iter().any(|part| name.contains(part)));
        part.or_else(|| is_mount.then(|| MOUNT[0].to_owned()))
    })
}

/// Returns the names of the parameters in the query, decoded and in lower case.
fn parameters(request: &Parts) -> impl Iterator<Item = String> + '_ {
    let pairs = request.uri.query().unwrap_or_default().split(['&', ';']);
    pairs.map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        String::from_utf8_lossy(&percent_decoded(name)).to_ascii_lowercase().replace('_', "-")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, headers: &[&str]) -> Option<String> {
        let mut builder = hyper::Request::builder().uri(target);
        for name in headers {
            builder = builder.header(*name, "/other/object");
        }
        second_path(&builder.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn headers_and_parameters_that_name_a_second_path_are_found() {
        for name in [
            "Destination",
            "x-amz-copy-source",
            "x_amz_copy_source",
            "x-amz-rename-source",
            "x-copy-from",
            "x-goog-copy-source",
            "x-ms-copy-source",
            "x-ms-rename-source",
            "x-object-manifest",
            "x-oss-symlink-target",
            "x-upyun-move-source",
        ] {
            assert!(check("/a", &[name]).is_some(), "{name}");
        }
        for target in [
            "/a?X-Amz-Copy-Source=%2Fother%2Fobject",
            "/a?b&x%2dms-copy-source=c",
            "/v2/agent/blobs/uploads/?mount=sha256:0&from=private/project",
            "/v2/agent/blobs/uploads/?from=private&Mount=sha256:0",
        ] {
            assert!(check(target, &[]).is_some(), "{target}");
        }
    }

    #[test]
    fn usual_requests_name_none() {
        assert_eq!(
            check("/a", &["accept", "authorization", "if-match", "x-amz-date", "origin", "referer"]),
            None
        );
        for target in ["/a", "/a?from=2026-01-01&to=2026-02-01", "/a?mount=/srv", "/search?q=copy-source"] {
            assert_eq!(check(target, &[]), None, "{target}");
        }
    }
}
