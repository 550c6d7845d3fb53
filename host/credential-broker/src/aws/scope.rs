//! The scope of a signature: a day, a region and a service.

use portcullis_decision::request::Endpoint;

use super::names::REQUEST;

/// The longest name of a region or a service, in bytes.
const NAME_MAX: usize = 64;
/// The region of services that have one address for all.
const GLOBAL: &str = "us-east-1";

/// The scopes for which a credential of AWS is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsLimits {
    /// The services, such as `s3`; empty for every service.
    pub services: Vec<String>,
    /// The regions, such as `eu-central-1`; empty for every region.
    pub regions: Vec<String>,
}

impl AwsLimits {
    /// Returns what to call the part of a scope that is not in these.
    pub(super) fn outside(&self, scope: &Scope) -> Option<String> {
        let is_in = |known: &[String], name: &String| known.is_empty() || known.contains(name);
        if !is_in(&self.services, &scope.service) {
            return Some(format!("the service `{}`", scope.service));
        }
        (!is_in(&self.regions, &scope.region)).then(|| format!("the region `{}`", scope.region))
    }

    /// Returns service and region for requests to a host: the declared ones, or those in the name of the host.
    pub fn for_host(&self, host: &Endpoint) -> Option<(String, String)> {
        let in_name = in_name(host);
        let (service, region) =
            in_name.map_or((None, None), |(service, region)| (Some(service), Some(region)));
        let service = self.services.first().cloned().or(service)?;
        Some((service, self.regions.first().cloned().or(region)?))
    }
}

/// Reads service and region in a name such as `bucket.s3.eu-central-1.amazonaws.com`.
fn in_name(host: &Endpoint) -> Option<(String, String)> {
    let Endpoint::Domain(name) = host else { return None };
    let name = name.strip_suffix(".amazonaws.com").or_else(|| name.strip_suffix(".amazonaws.com.cn"))?;
    let mut labels = name.rsplit('.');
    let last = labels.next()?;
    let is_region = last.contains('-') && last.ends_with(|letter: char| letter.is_ascii_digit());
    let (service, region) = if is_region { (labels.next()?, last) } else { (last, GLOBAL) };
    Some((service.to_owned(), region.to_owned()))
}

/// The scope of one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// The day, such as `20150830`.
    pub(super) day: String,
    pub(super) region: String,
    pub(super) service: String,
}

impl Scope {
    /// Parses the parts after the id of the key.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [day, region, service, end] = parts.as_slice() else { return None };
        let is_day = day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = |name: &str| {
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(fits)
        };
        let is_one = is_day && is_name(region) && is_name(service) && *end == REQUEST;
        is_one.then(|| Self {
            day: (*day).to_owned(),
            region: (*region).to_owned(),
            service: (*service).to_owned(),
        })
    }

    pub(super) fn text(&self) -> String {
        format!("{}/{}/{}/{REQUEST}", self.day, self.region, self.service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_and_region_are_read_in_the_names_of_hosts() {
        for (host, wanted) in [
            ("s3.eu-central-1.amazonaws.com", Some(("s3", "eu-central-1"))),
            ("my.bucket.s3.eu-central-1.amazonaws.com", Some(("s3", "eu-central-1"))),
            ("sts.amazonaws.com", Some(("sts", "us-east-1"))),
            ("bucket.s3.amazonaws.com", Some(("s3", "us-east-1"))),
            ("dynamodb.cn-north-1.amazonaws.com.cn", Some(("dynamodb", "cn-north-1"))),
            ("minio.test", None),
        ] {
            let found = AwsLimits::default().for_host(&Endpoint::Domain(host.to_owned()));
            assert_eq!(found, wanted.map(|(one, other)| (one.to_owned(), other.to_owned())), "{host}");
        }
        let declared = AwsLimits { services: vec!["s3".to_owned()], regions: vec!["r-1".to_owned()] };
        let found = declared.for_host(&Endpoint::Domain("minio.test".to_owned()));
        assert_eq!(found, Some(("s3".to_owned(), "r-1".to_owned())));
    }
}
