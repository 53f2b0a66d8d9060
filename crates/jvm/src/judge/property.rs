//! Properties that the JVM or its class library judges when it starts.
//!
//! Tried on 8u504, 11.0.13, 17.0.15, 21.0.8 and 25.0.3. Of any other property the value is the application's.

use super::Case;
use super::spelled::Taken;
use crate::release::Release;

/// What this JDK does with `-DNAME=VALUE`, and with the debugger's agent, which it has itself; `None` where it is not looked at.
pub(super) fn taken(case: &Case, option: &str) -> Option<Taken> {
    if let Some(value) = option.strip_prefix("-agentlib:jdwp=") {
        return of_debugger(value);
    }
    let property = option.strip_prefix("-D")?;
    let (name, value) = property.split_once('=').unwrap_or((property, ""));
    match name {
        "java.security.manager" => security_manager(case.release, value),
        "java.endorsed.dirs" | "java.ext.dirs"
            if case.release > Release(8) && !value.is_empty() =>
        {
            Some(Taken::No(
                "JDK 9 removed these folders; use -classpath".to_owned(),
            ))
        }
        "java.system.class.loader" => Some(Taken::Unknown(format!(
            "the JVM refuses to start if it cannot load the class '{value}'"
        ))),
        "jdk.module.main" if case.release > Release(8) => Some(Taken::Unknown(
            "the launcher sets it; the JVM refuses to start if the module is missing".to_owned(),
        )),
        "com.sun.management.config.file" => Some(Taken::Unknown(format!(
            "the JVM refuses to start if it cannot read {value}"
        ))),
        "com.sun.management.jmxremote.port" => Some(port(case, value)),
        "file.separator" if value != "/" => Some(Taken::No(
            "the class library for Linux finds no file with it".to_owned(),
        )),
        "os.name" if case.release <= Release(8) && value != "Linux" => Some(Taken::No(
            "the class library of JDK 8 for Linux supports no other system".to_owned(),
        )),
        // An encoding of JDK 8 that it does not have ends the start.
        "sun.jnu.encoding" if case.release <= Release(8) && !is_common(value) => {
            Some(Taken::Unknown(format!(
                "whether JDK 8 has the encoding '{value}' is unknown"
            )))
        }
        "sun.reflect.inflationThreshold"
            if case.release <= Release(8) && value.parse::<i32>().is_err() =>
        {
            Some(Taken::No(format!("'{value}' is not an integer")))
        }
        _ => None,
    }
}

/// JEP 411 (warning, JDK 17), JDK 18 (`allow` needed to set one later), JEP 486 (gone, JDK 24). Up to JDK 11 any word but `default`
/// is the name of a class.
fn security_manager(release: Release, value: &str) -> Option<Taken> {
    match value {
        "disallow" if release >= Release(12) => None,
        _ if release >= Release(24) => Some(Taken::No(
            "JDK 24 removed the security manager (JEP 486)".to_owned(),
        )),
        "" | "default" => None,
        "allow" if release >= Release(12) => None,
        "allow" | "disallow" => Some(Taken::No(format!(
            "{release} reads '{value}' as the name of a class"
        ))),
        class => Some(Taken::Unknown(format!(
            "the JVM refuses to start if it cannot load the class '{class}'"
        ))),
    }
}

/// `debugInit.c` of `jdk.jdwp.agent`.
fn of_debugger(value: &str) -> Option<Taken> {
    const KEYS: [&str; 14] = [
        "address",
        "allow",
        "errorexit",
        "includevirtualthreads",
        "launch",
        "mutf8",
        "onthrow",
        "onuncaught",
        "pause",
        "quiet",
        "server",
        "stdalloc",
        "suspend",
        "timeout",
    ];
    if value == "help" {
        return None;
    }
    let mut transport = None;
    for part in value.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if key == "transport" {
            transport = Some(value);
        } else if !KEYS.contains(&key) {
            return Some(Taken::No(format!("the jdwp agent has no option '{key}'")));
        }
    }
    match transport {
        Some("dt_socket") => None,
        Some(other) => Some(Taken::Unknown(format!(
            "whether the transport {other} exists is unknown"
        ))),
        None => Some(Taken::No(
            "its transport is missing: transport=dt_socket".to_owned(),
        )),
    }
}

fn port(case: &Case, value: &str) -> Taken {
    if value.parse::<u16>().is_err() {
        return Taken::No(format!("'{value}' is not a port"));
    }
    let off = |what: &str| {
        let wanted = format!("-Dcom.sun.management.jmxremote.{what}=false");
        case.line
            .options
            .iter()
            .any(|given| given.written == wanted)
    };
    if off("authenticate") {
        Taken::Yes
    } else {
        Taken::Unknown(
            "the JVM refuses to start without its password file jmxremote.password".to_owned(),
        )
    }
}

fn is_common(encoding: &str) -> bool {
    let encoding = encoding.to_ascii_uppercase();
    [
        "UTF-8",
        "UTF8",
        "ISO-8859-1",
        "ISO8859_1",
        "ANSI_X3.4-1968",
        "US-ASCII",
    ]
    .contains(&&*encoding)
}
