//! Documents that were stored: plans of `knob plan`, findings of `check`.
//!
//! The named file may be another document, one of another rungwise, or none. It is checked before anything in it is
//! used, and the error says what is wrong.

use std::path::Path;

use rungwise_model::SCHEMA_VERSION;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::documents::short_file;

/// The longest that is read; a check of a host with thousands of sockets is a hundredth of it.
const LONGEST: u64 = 64 << 20;

/// What a document is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plan,
    Check,
}

/// Tells what a document is, whatever the rest of it.
#[derive(Deserialize)]
struct Head {
    schema: Option<u32>,
    plans: Option<IgnoredAny>,
    findings: Option<IgnoredAny>,
    /// Of a document on a JVM: what its log tells of it, or its JDK.
    jvm: Option<IgnoredAny>,
    jdk: Option<IgnoredAny>,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Plan => "a plan",
            Self::Check => "a check",
        }
    }

    /// How to get one.
    fn remedy(self) -> &'static str {
        match self {
            Self::Plan => "make one with `rungwise knob plan ID=VALUE -o PLAN.json`",
            Self::Check => "make one with `rungwise check --format json -o CHECK.json`",
        }
    }

    /// Reads the document at `path`.
    pub(super) fn read<T: DeserializeOwned>(self, path: &Path) -> anyhow::Result<T> {
        let bytes = short_file(path, LONGEST);
        bytes.and_then(|bytes| self.parse(&bytes)).map_err(|why| {
            anyhow::anyhow!(
                "cannot read {} as {}: {why}; {}",
                path.display(),
                self.name(),
                self.remedy()
            )
        })
    }

    /// The reason, where these bytes are none.
    fn parse<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, String> {
        if bytes.trim_ascii().is_empty() {
            return Err("it is empty".to_owned());
        }
        let head: Head = serde_json::from_slice(bytes)
            .map_err(|error| format!("it is not a JSON document of rungwise ({error})"))?;
        match head.schema {
            Some(SCHEMA_VERSION) => {}
            Some(other) => {
                let age = if other < SCHEMA_VERSION {
                    "an older"
                } else {
                    "a newer"
                };
                return Err(format!(
                    "{age} rungwise wrote it, with schema {other}, and this one reads schema {SCHEMA_VERSION}"
                ));
            }
            None => return Err("it has no schema version".to_owned()),
        }
        let wanted = match self {
            Self::Plan => &head.plans,
            Self::Check => &head.findings,
        };
        if wanted.is_none() {
            return Err(match (self, &head.plans, &head.findings) {
                (Self::Plan, _, Some(_)) => "it is a check; name it with --from".to_owned(),
                (Self::Check, Some(_), _) => "it is a plan; name it without --from".to_owned(),
                _ => "it is another document of rungwise".to_owned(),
            });
        }
        if self == Self::Check && (head.jvm.is_some() || head.jdk.is_some()) {
            let why = "it judges a JVM, whose options are not host knobs: change them where the JVM is started";
            return Err(why.to_owned());
        }
        serde_json::from_slice(bytes).map_err(|error| format!("it is damaged ({error})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Plans {
        plans: Vec<String>,
    }

    fn refused(kind: Kind, text: &str) -> String {
        kind.parse::<Plans>(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_document_of_this_schema_is_read() {
        let read: Plans = Kind::Plan.parse(br#"{"schema":1,"plans":["a"]}"#).unwrap();
        assert_eq!(read.plans, ["a"]);
    }

    #[test]
    fn what_is_none_is_refused_with_what_it_is() {
        for (kind, text, why) in [
            (Kind::Plan, "", "empty"),
            (Kind::Check, " \n", "empty"),
            (Kind::Plan, "net.rp_filter = 2", "not a JSON document"),
            (Kind::Plan, "[]", "not a JSON document"),
            (Kind::Plan, "{", "not a JSON document"),
            (Kind::Plan, "{}", "no schema version"),
            (
                Kind::Plan,
                r#"{"schema":0,"plans":[]}"#,
                "an older rungwise",
            ),
            (
                Kind::Check,
                r#"{"schema":9,"findings":[]}"#,
                "a newer rungwise",
            ),
            (Kind::Plan, r#"{"schema":1,"findings":[]}"#, "it is a check"),
            (Kind::Check, r#"{"schema":1,"plans":[]}"#, "it is a plan"),
            (Kind::Check, r#"{"schema":1}"#, "another document"),
            (Kind::Plan, r#"{"schema":1,"plans":{}}"#, "it is damaged"),
            (
                Kind::Check,
                r#"{"schema":1,"findings":[],"target":"gc.log","jvm":{"collector":"G1"}}"#,
                "it judges a JVM",
            ),
        ] {
            let said = refused(kind, text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_folder_a_device_without_end_and_nothing_at_all_are_distinguished() {
        let said = |path: &str| {
            let error = Kind::Plan.read::<Plans>(Path::new(path)).unwrap_err();
            let said = error.to_string();
            assert!(
                said.starts_with(&format!("cannot read {path} as a plan: ")),
                "{said}"
            );
            assert!(said.ends_with("-o PLAN.json`"), "{said}");
            said
        };
        assert!(said("/").contains("it is a folder"));
        assert!(said("/dev/zero").contains("larger than 64 MiB"));
        assert!(said("/nonexistent").contains("No such file"));
        assert!(said("/dev/null").contains("it is empty"));
    }
}
