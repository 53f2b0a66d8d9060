//! Options that name modules: their form, and modules that a JDK does not have.
//!
//! `jdk.internal.module.ModuleBootstrap` and the launcher refuse malformed ones; a package or target that does not exist is a warning.

use super::Case;
use super::spelled::Taken;
use crate::release::Release;

/// Modules with the first release that has them and the first that does not. Removed by JEP 320 (Java EE), 321 (HTTP client), 367
/// (pack), 372 (Nashorn), 392 (jpackage), 410 (AOT), 424 (foreign memory), 453 (structured concurrency).
const DATED: &[(&str, u8, u8)] = &[
    ("java.activation", 9, 11),
    ("java.corba", 9, 11),
    ("java.se.ee", 9, 11),
    ("java.transaction", 9, 11),
    ("java.xml.bind", 9, 11),
    ("java.xml.ws", 9, 11),
    ("java.xml.ws.annotation", 9, 11),
    ("jdk.aot", 9, 17),
    ("jdk.incubator.concurrent", 19, 21),
    ("jdk.incubator.foreign", 14, 19),
    ("jdk.incubator.httpclient", 9, 11),
    ("jdk.incubator.jpackage", 14, 16),
    ("jdk.incubator.vector", 16, u8::MAX),
    ("jdk.jpackage", 16, u8::MAX),
    ("jdk.pack", 9, 14),
    ("jdk.rmic", 9, 15),
    ("jdk.scripting.nashorn", 9, 15),
    ("jdk.scripting.nashorn.shell", 9, 15),
    ("jdk.xml.bind", 9, 11),
    ("jdk.xml.ws", 9, 11),
    ("java.net.http", 11, u8::MAX),
    ("jdk.nio.mapmode", 14, u8::MAX),
];

/// The other modules of the JDK: `java --list-modules` of 17.0.15 and 25.0.3, without those that only one of them has.
const LASTING: &[&str] = &[
    "java.base",
    "java.compiler",
    "java.datatransfer",
    "java.desktop",
    "java.instrument",
    "java.logging",
    "java.management",
    "java.management.rmi",
    "java.naming",
    "java.prefs",
    "java.rmi",
    "java.scripting",
    "java.se",
    "java.security.jgss",
    "java.security.sasl",
    "java.smartcardio",
    "java.sql",
    "java.sql.rowset",
    "java.transaction.xa",
    "java.xml",
    "java.xml.crypto",
    "jdk.accessibility",
    "jdk.attach",
    "jdk.charsets",
    "jdk.compiler",
    "jdk.crypto.cryptoki",
    "jdk.crypto.ec",
    "jdk.dynalink",
    "jdk.editpad",
    "jdk.hotspot.agent",
    "jdk.httpserver",
    "jdk.internal.ed",
    "jdk.internal.jvmstat",
    "jdk.internal.le",
    "jdk.internal.opt",
    "jdk.internal.vm.ci",
    "jdk.jartool",
    "jdk.javadoc",
    "jdk.jcmd",
    "jdk.jconsole",
    "jdk.jdeps",
    "jdk.jdi",
    "jdk.jdwp.agent",
    "jdk.jfr",
    "jdk.jlink",
    "jdk.jshell",
    "jdk.jsobject",
    "jdk.jstatd",
    "jdk.localedata",
    "jdk.management",
    "jdk.management.agent",
    "jdk.management.jfr",
    "jdk.naming.dns",
    "jdk.naming.rmi",
    "jdk.net",
    "jdk.sctp",
    "jdk.security.auth",
    "jdk.security.jgss",
    "jdk.unsupported",
    "jdk.unsupported.desktop",
    "jdk.xml.dom",
    "jdk.zipfs",
];

/// What this JDK does with the value of a module option; `None` for any other option.
pub(super) fn taken(case: &Case, option: &str) -> Option<Taken> {
    let (name, value) = option.split_once('=')?;
    let no = |why: &str| Some(Taken::No(why.to_owned()));
    match name {
        "--add-modules" | "--limit-modules" => Some(of_list(case, value)),
        // Seen on 25.0.3; with older ones an empty value is an error.
        "--add-opens" | "--add-exports" if value.is_empty() && case.release >= Release(25) => {
            Some(Taken::Yes)
        }
        "--add-opens" | "--add-exports" => {
            let parts = value.split_once('=').and_then(|(place, target)| {
                let (module, package) = place.split_once('/')?;
                Some([module, package, target])
            });
            // What no package is called is a warning, but for the signs that part such options.
            let good = |[module, package, target]: [&str; 3]| {
                !module.is_empty()
                    && !target.is_empty()
                    && !package.is_empty()
                    && !package.contains(['/', ','])
            };
            if parts.is_some_and(good) {
                Some(Taken::Yes)
            } else {
                no("it takes MODULE/PACKAGE=TARGET, such as java.base/java.lang=ALL-UNNAMED")
            }
        }
        "--add-reads" => match value.split_once('=') {
            Some((module, target)) if !module.is_empty() && !target.is_empty() => Some(Taken::Yes),
            _ => no("it takes MODULE=TARGET"),
        },
        "--patch-module" => match value.split_once('=') {
            Some((module, path)) if !module.is_empty() && !path.is_empty() => {
                let own = format!("{name}={module}=");
                let spaced = format!("{name} {module}=");
                let times = case.line.options.iter().filter(|given| {
                    given.written.starts_with(&own) || given.written.starts_with(&spaced)
                });
                if times.count() > 1 {
                    no("a module can be patched once; separate its paths with :")
                } else {
                    Some(Taken::Yes)
                }
            }
            _ => no("it takes MODULE=PATH"),
        },
        _ => None,
    }
}

fn of_list(case: &Case, list: &str) -> Taken {
    if list.split(',').all(str::is_empty) {
        return Taken::No("it takes a comma-separated list of modules".to_owned());
    }
    let mut unknown = None;
    for module in list.split(',').filter(|module| !module.is_empty()) {
        match of_module(case.release, module) {
            Taken::Yes => {}
            Taken::Unknown(why) => unknown = Some(why),
            no @ Taken::No(_) => return no,
        }
    }
    unknown.map_or(Taken::Yes, Taken::Unknown)
}

fn of_module(release: Release, module: &str) -> Taken {
    if ["ALL-SYSTEM", "ALL-DEFAULT", "ALL-MODULE-PATH"].contains(&module)
        || LASTING.contains(&module)
    {
        return Taken::Yes;
    }
    if let Some((_, first, gone)) = DATED.iter().find(|(name, ..)| *name == module) {
        return if release < Release(*first) {
            Taken::No(format!(
                "the module {module} was added in {}",
                Release(*first)
            ))
        } else if release >= Release(*gone) {
            Taken::No(format!(
                "the module {module} was removed in {}",
                Release(*gone)
            ))
        } else {
            Taken::Yes
        };
    }
    if module.starts_with("ALL-") || module.starts_with("java.") && release <= Release(25) {
        return Taken::No(format!("no JDK has a module {module}"));
    }
    Taken::Unknown(format!("whether the module {module} exists is unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_there_from_their_first_release_to_their_last() {
        let taken = |release, module| of_module(Release(release), module) == Taken::Yes;
        assert!(taken(9, "java.xml.bind") && !taken(11, "java.xml.bind"));
        assert!(!taken(15, "jdk.incubator.vector") && taken(25, "jdk.incubator.vector"));
        assert!(taken(11, "java.sql") && !taken(17, "java.sqll"));
        assert!(matches!(
            of_module(Release(17), "com.example"),
            Taken::Unknown(_)
        ));
    }

    #[test]
    fn a_module_has_one_row() {
        for (index, (module, first, gone)) in DATED.iter().enumerate() {
            assert!(first < gone, "{module}");
            assert!(!LASTING.contains(module), "{module}");
            assert!(DATED[..index].iter().all(|(other, ..)| other != module));
        }
    }
}
