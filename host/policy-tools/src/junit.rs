//! JUnit's format for results.

use portcullis_text::escape;

use crate::run::Report;

/// Returns the report as JUnit XML, for build servers.
#[must_use]
pub fn junit(name: &str, report: &Report) -> String {
    let escape = |text: &str| {
        let text = escape(text);
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let failures: String = report
        .failures
        .iter()
        .map(|failure| {
            format!(
                "  <testcase classname=\"{}\" name=\"{}\"><failure message=\"{}\"/></testcase>\n",
                escape(&failure.file),
                escape(&failure.case),
                escape(&failure.message)
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n{failures}</testsuite>\n",
        escape(name),
        report.run,
        report.failures.len()
    )
}
