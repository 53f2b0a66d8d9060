//! Placeholders in commands and addresses: `{server}`, `{client}`, `{device}`, `{cpus}`, `{rungwise}`, `{scratch}`, `{built}`.
//!
//! The addresses of a lab are known only once it is built, and a file must run on any machine. Literal braces are doubled.

use super::problem::did_you_mean;

/// Every placeholder and its meaning.
pub const PLACEHOLDERS: [(&str, &str); 7] = [
    ("server", "address of the server"),
    ("client", "address of the client"),
    ("device", "network device of the server"),
    ("cpus", "number of CPUs"),
    ("rungwise", "path of this program"),
    (
        "scratch",
        "folder for the service's files, empty at each start",
    ),
    ("built", "folder of what [service.build] built"),
];

/// The values of the placeholders in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Address of the server.
    pub server: String,
    /// Address of the client.
    pub client: String,
    /// Network device of the server, where it has its own.
    pub device: Option<String>,
    /// Number of CPUs.
    pub cpus: usize,
    /// Path of this program.
    pub rungwise: String,
    /// Folder that is empty at each start of the service.
    pub scratch: String,
    /// Folder of the built service, where one is built.
    pub built: Option<String>,
}

impl Places {
    /// What a placeholder stands for; nothing for an unknown name.
    pub(super) fn value(&self, name: &str) -> Result<Option<String>, FillError> {
        Ok(Some(match name {
            "server" => self.server.clone(),
            "client" => self.client.clone(),
            "device" => self.device.clone().ok_or(FillError::NoDevice)?,
            "cpus" => self.cpus.to_string(),
            "rungwise" => self.rungwise.clone(),
            "scratch" => self.scratch.clone(),
            "built" => self.built.clone().ok_or(FillError::NoBuild)?,
            _ => return Ok(None),
        }))
    }
}

/// A template that cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// An unknown name.
    #[error(
        "unknown placeholder '{{{name}}}'{near}; placeholders: {{server}}, {{client}}, {{device}}, {{cpus}}, {{rungwise}}, {{scratch}} and {{built}}"
    )]
    Unknown {
        /// The name between the braces.
        name: String,
        /// The nearest placeholder, as a question; may be empty.
        near: String,
    },
    /// Options of a JVM are set, and no JVM is started.
    #[error(
        "'{knob}' changes options of java, and service.command has no word 'java' (or a path that ends in /java); have the command start \
         java itself, or declare the arguments of '{knob}' in [service.switches]"
    )]
    NoJava {
        /// The knob.
        knob: String,
    },
    /// There is no device.
    #[error("'{{device}}' has no value here: the server has no network device of its own")]
    NoDevice,
    /// Nothing is built.
    #[error(
        "'{{built}}' is the folder of what [service.build] built, and there is no such table; add it"
    )]
    NoBuild,
    /// In a file: what is between the braces is nearly a placeholder.
    #[error(
        "'{{{name}}}' is no placeholder{near}; write '{{{{{name}}}}}' where the file should contain '{{{name}}}'"
    )]
    Slip {
        /// The name between the braces.
        name: String,
        /// The nearest placeholder, as a question; may be empty.
        near: String,
    },
    /// A brace without its partner.
    #[error("unmatched '{0}'; write '{0}{0}' for a literal brace")]
    Unbalanced(char),
}

/// More placeholders, for a load program.
pub const LOAD_PLACEHOLDERS: [(&str, &str); 8] = [
    ("target", "address and port of the service"),
    ("host", "address of the service"),
    ("port", "port of the service"),
    ("seconds", "measured length of a run"),
    ("rate", "requests per second"),
    ("connections", "connections to open"),
    ("requests", "requests to send"),
    ("output", "file that the program writes its figures to"),
];

/// Replaces the placeholders of `template`.
pub fn fill(template: &str, places: &Places) -> Result<String, FillError> {
    fill_with(template, places, &|_| None)
}

/// The same with more placeholders: what `more` gives for their names.
pub(super) fn fill_with(
    template: &str,
    places: &Places,
    more: &dyn Fn(&str) -> Option<String>,
) -> Result<String, FillError> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let brace = if rest[at..].starts_with('{') {
            '{'
        } else {
            '}'
        };
        let after = &rest[at + 1..];
        if let Some(beyond) = after.strip_prefix(brace) {
            filled.push(brace);
            rest = beyond;
        } else if brace == '}' {
            return Err(FillError::Unbalanced(brace));
        } else {
            let (name, beyond) = after.split_once('}').ok_or(FillError::Unbalanced(brace))?;
            let value = places.value(name)?.or_else(|| more(name));
            let value = value.ok_or_else(|| FillError::Unknown {
                name: name.to_owned(),
                near: did_you_mean(name, PLACEHOLDERS.map(|(known, _)| known)),
            })?;
            filled.push_str(&value);
            rest = beyond;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            server: "10.0.0.1".to_owned(),
            client: "10.0.0.2".to_owned(),
            device: Some("veth0".to_owned()),
            cpus: 2,
            rungwise: "/bin/rungwise".to_owned(),
            scratch: "/tmp/scratch".to_owned(),
            built: Some("/tmp/built".to_owned()),
        }
    }

    #[test]
    fn placeholders_are_replaced_and_doubled_braces_kept() {
        assert_eq!(fill("{server}:9000", &places()).unwrap(), "10.0.0.1:9000");
        assert_eq!(fill("{{{cpus}}}", &places()).unwrap(), "{2}");
        assert_eq!(fill("plain é", &places()).unwrap(), "plain é");
        for (name, _) in PLACEHOLDERS {
            assert!(fill(&format!("{{{name}}}"), &places()).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_not_made_up() {
        let nowhere = Places {
            device: None,
            ..places()
        };
        assert_eq!(fill("--xdp {device}", &nowhere), Err(FillError::NoDevice));
    }

    #[test]
    fn an_unknown_placeholder_names_the_nearest() {
        let error = fill("{sever}:1", &places()).unwrap_err().to_string();
        assert!(error.contains("did you mean 'server'?"), "{error}");
        assert_eq!(fill("{server", &places()), Err(FillError::Unbalanced('{')));
        assert_eq!(fill("a}", &places()), Err(FillError::Unbalanced('}')));
    }
}
