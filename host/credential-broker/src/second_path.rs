//! Requests that name a second path besides their own, which no rule for paths has judged.
//!
//! The server copies from that path, moves a file to it, or shows its content. The gate passes such a request on only if
//! the rules permit every path.

use hyper::http::request::Parts;

use super::well_formed::percent_decoded;

/// Headers that name a path, host or object of their own: of WebDAV, of OpenStack's store, of Artifactory, which takes a
/// file from wherever it has one with this sum, of Tencent's pictures, and of Vault, which puts the value before the path.
const HEADERS: &[&str] =
    &["destination", "pic-operations", "x-checksum-deploy", "x-object-manifest", "x-vault-namespace"];
/// Parts of the names of such headers, which each store of objects begins with its own prefix. Some stores also take
/// them from the query.
const PARTS: &[&str] =
    &["copy-from", "copy-source", "move-source", "rename-source", "save-object", "symlink-target"];
/// Parameters with the path that the server really takes: of WordPress.
const ROUTES: &[&str] = &["rest-route"];
/// The same if their value is a path: of Solr.
const ROUTES_WITH_PATHS: &[&str] = &["qt", "shards"];
/// `x-oss-process` and its kind have the store edit a picture. With the instruction `saveas`, the store writes the result
/// to an object that the parameter names.
const PROCESS: &str = "-process";
const SAVE: &str = "saveas";
/// Parameters of requests that change something, with which the content is a list of other paths or a path of its own:
/// of WebHDFS, and of the stores of OpenStack and Google.
const PARAMETERS: &[&str] = &["bulk-delete", "compose", "destination", "multipart-manifest", "sources"];
/// The same if their value is a path or names an image: of registries of containers, and of Artifactory.
const WITH_PATHS: &[&str] = &["from", "mount", "to"];

/// Returns the header or parameter that names a second path.
pub(super) fn second_path(request: &Parts) -> Option<String> {
    let is_one = |name: &str| HEADERS.contains(&name) || PARTS.iter().any(|part| name.contains(part));
    // Servers that hand headers on as variables read `_` and `-` as one.
    let mut headers = request.headers.keys().map(|name| name.as_str().replace('_', "-"));
    headers.find(|name| is_one(name)).or_else(|| {
        let is_change = !request.method.is_safe();
        let names_one = |name: &str, value: &str| {
            let is_path = value.contains(['/', '@']) || name == "mount" && value.contains(':');
            PARTS.iter().any(|part| name.contains(part))
                || ROUTES.contains(&name)
                || ROUTES_WITH_PATHS.contains(&name) && value.contains('/')
                || name.ends_with(PROCESS) && value.to_ascii_lowercase().contains(SAVE)
                || is_change && (PARAMETERS.contains(&name) || WITH_PATHS.contains(&name) && is_path)
        };
        parameters(request).find(|(name, value)| names_one(name, value)).map(|(name, _)| name)
    })
}

/// Returns the parameters in the query, decoded, with names in lower case.
fn parameters(request: &Parts) -> impl Iterator<Item = (String, String)> + '_ {
    let pairs = request.uri.query().unwrap_or_default().split(['&', ';']);
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let [name, value] =
            [name, value].map(|text| String::from_utf8_lossy(&percent_decoded(text)).into_owned());
        (name.to_ascii_lowercase().replace('_', "-"), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, target: &str, headers: &[&str]) -> Option<String> {
        let mut builder = hyper::Request::builder().method(method).uri(target);
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
            "X-Checksum-Deploy",
            "x-copy-from",
            "x-goog-copy-source",
            "x-ms-copy-source",
            "x-ms-rename-source",
            "x-object-manifest",
            "x-oss-symlink-target",
            "X-Vault-Namespace",
            "Pic-Operations",
            "x-tos-save-object",
            "x-upyun-move-source",
        ] {
            assert!(check("PUT", "/a", &[name]).is_some(), "{name}");
        }
        for target in [
            "/a?X-Amz-Copy-Source=%2Fother%2Fobject",
            "/a?b&x%2dms-copy-source=c",
            "/v2/agent/blobs/uploads/?mount=sha256:0&from=private/project",
            "/v2/agent/blobs/uploads/?from=private&Mount=sha256:0",
            "/v2/agent/blobs/uploads/?mount=sha256%3A0",
            "/api/v2.0/projects/agent/repositories/app/artifacts?from=private%2Fapp@sha256:0",
            "/webhdfs/v1/agent/a?op=RENAME&destination=/private/a",
            "/webhdfs/v1/agent/a?op=CONCAT&sources=/private/a",
            "/v1/account/agent/a?multipart-manifest=put",
            "/agent/a?compose",
            "/api/copy/private/a?to=/agent/a",
            "/v1/account?bulk-delete",
            "/?rest_route=/wp/v2/users",
            "/solr/open/select?shards=localhost:8983/solr/closed",
            "/a?x-oss-process=image/resize,w_1%7Csys/saveas,o_b",
        ] {
            assert!(check("POST", target, &[]).is_some(), "{target}");
        }
    }

    #[test]
    fn usual_requests_name_none() {
        assert_eq!(
            check("PUT", "/a", &["accept", "authorization", "if-match", "x-amz-date", "origin", "referer"]),
            None
        );
        for target in
            ["/a", "/a?from=2026-01-01T00:00&to=2026-02-01", "/a?mount=srv", "/search?q=copy-source"]
        {
            assert_eq!(check("POST", target, &[]), None, "{target}");
        }
        assert!(check("GET", "/?rest_route=/wp/v2/users", &[]).is_some());
        for target in
            ["/a?from=/b&to=/c", "/a?sources=all", "/a?destination=b", "/a?x-oss-process=image/resize"]
        {
            assert_eq!(check("GET", target, &[]), None, "{target}");
        }
    }
}
