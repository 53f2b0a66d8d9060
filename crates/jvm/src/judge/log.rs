//! What unified logging refuses of `-Xlog:SELECTIONS:OUTPUT:DECORATORS:OPTIONS`: the JVM then does not start.
//!
//! Tried on 11.0.13, 17.0.15, 21.0.8 and 25.0.3; `logging/logSelection.cpp`, `logDecorators.cpp`, `logFileOutput.cpp`.

use crate::release::Release;

/// Each tag with the releases that have it.
const TAGS: &str = include_str!("../../data/log-tags.txt");

/// The releases that were asked for their tags.
const ASKED: [Release; 4] = [Release(11), Release(17), Release(21), Release(25)];

const LEVELS: [&str; 6] = ["off", "trace", "debug", "info", "warning", "error"];

/// Long and short names; any of them in either case.
const DECORATORS: [&str; 25] = [
    "time",
    "t",
    "utctime",
    "utc",
    "uptime",
    "u",
    "timemillis",
    "tm",
    "uptimemillis",
    "um",
    "timenanos",
    "tn",
    "uptimenanos",
    "un",
    "hostname",
    "hn",
    "pid",
    "p",
    "tid",
    "ti",
    "level",
    "l",
    "tags",
    "tg",
    "",
];

const OPTIONS: [&str; 3] = ["filecount", "filesize", "foldmultilines"];

/// Why the JVM does not start with `-Xlog:` and this; `None` where it does, or where that is unknown.
pub(super) fn why(release: Release, text: &str) -> Option<String> {
    // A file name in quotes may hold a colon.
    let quote = text.find('"');
    let text = &text[..quote.unwrap_or(text.len())];
    let (selections, rest) = text.split_once(':').unwrap_or((text, ""));
    // More parts are ignored with a warning.
    let mut parts = behind_drive(rest).split(':').skip(1);
    let (decorators, options) = (parts.next(), parts.next());
    if ["disable", "help"].contains(&selections) {
        return None;
    }
    if selections == "async" {
        return of_async(release, rest);
    }
    let mut all = selections.split(',').filter(|_| !selections.is_empty());
    let selection = all.find_map(|selection| of_selection(release, selection));
    let decorators = || {
        let decorators = decorators?.to_ascii_lowercase();
        if decorators == "none" {
            return None;
        }
        let wrong = decorators
            .split(',')
            .find(|name| !DECORATORS.contains(name))?;
        Some(format!("'{wrong}' is not a decoration"))
    };
    let output = rest.split(':').next().unwrap_or_default();
    selection
        .or_else(|| of_output(output).filter(|_| quote.is_none()))
        .or_else(decorators)
        .or_else(|| {
            let options = options.filter(|options| !options.is_empty())?;
            let mut options = options.split(',');
            options.find_map(|option| of_option(release, output, option))
        })
}

/// Lines that are written by another thread came with JDK 17, what becomes of those that do not fit its buffer with JDK 25 at the
/// latest.
fn of_async(release: Release, rest: &str) -> Option<String> {
    if release < Release(17) {
        return Some("'async' was added in JDK 17".to_owned());
    }
    match rest {
        "" => None,
        "drop" | "stall" if release >= Release(25) => None,
        _ => Some(format!("'{rest}' is not a mode of asynchronous logging")),
    }
}

/// The name of a file may have `file=` before it, and no other word.
fn of_output(output: &str) -> Option<String> {
    match output.split_once('=') {
        Some(("file", "")) => Some("the name of the file is missing".to_owned()),
        Some(("file", _)) | None => None,
        Some((kind, _)) => Some(format!("'{kind}' is not a type of output")),
    }
}

/// `filecount=5`.
fn of_option(release: Release, output: &str, option: &str) -> Option<String> {
    /// `LogFileOutput::MaxRotationFileCount`.
    const MOST_FILES: u64 = 1000;
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    if !OPTIONS.contains(&name) {
        return Some(format!("'{name}' is not an option of an output"));
    }
    let is_stream = ["", "stdout", "stderr"].contains(&output);
    // JDK 17 and older look at no option of a stream.
    if is_stream && release < Release(21) {
        return None;
    }
    match name {
        "filecount" | "filesize" if is_stream => {
            Some(format!("'{name}' is not an option of {output}"))
        }
        "filecount" => {
            let count: Result<u64, _> = value.parse();
            let fits = count.is_ok_and(|count| count <= MOST_FILES);
            (!fits).then(|| format!("'{value}' is not a number up to {MOST_FILES}"))
        }
        "filesize" => crate::size::bytes(value)
            .is_none()
            .then(|| format!("'{value}' is not a size")),
        _ => {
            let fits = ["true", "false"].contains(&value);
            (!fits).then(|| format!("'{value}' is neither true nor false"))
        }
    }
}

/// The output and what follows, without the drive of a file on Windows: the colon in `C:\gc.log` parts nothing there. A shell
/// may have taken the backslash away.
fn behind_drive(text: &str) -> &str {
    let path = text.strip_prefix("file=").unwrap_or(text);
    match path.as_bytes() {
        [drive, b':', ..] if drive.is_ascii_alphabetic() => &path[2..],
        _ => text,
    }
}

/// `gc+heap*=debug`.
fn of_selection(release: Release, selection: &str) -> Option<String> {
    let (tags, level) = match selection.split_once('=') {
        Some((tags, level)) => (tags, Some(level)),
        None => (selection, None),
    };
    if let Some(level) = level
        && !LEVELS.contains(&&*level.to_ascii_lowercase())
    {
        return Some(format!(
            "'{level}' is not a level; the levels are {}",
            LEVELS.join(", ")
        ));
    }
    let tags = tags.strip_suffix('*').unwrap_or(tags).to_ascii_lowercase();
    if tags == "all" {
        return None;
    }
    let mut seen: Vec<&str> = Vec::new();
    for tag in tags.split('+') {
        if seen.contains(&tag) {
            return Some(format!("the tag {tag} appears twice in '{selection}'"));
        }
        seen.push(tag);
        if !is_tag(release, tag) {
            return Some(format!("'{tag}' is not a tag"));
        }
    }
    None
}

/// Of a release that was not asked any tag is taken that one of the others has.
fn is_tag(release: Release, tag: &str) -> bool {
    let mut tags = TAGS.lines().filter(|line| !line.starts_with('#'));
    let line = tags.find_map(|line| line.strip_prefix(tag)?.strip_prefix(' '));
    let number = release.0.to_string();
    line.is_some_and(|releases| {
        !ASKED.contains(&release) || releases.split(' ').any(|has| has == number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_jvm_was_seen_to_take_or_to_refuse() {
        for taken in [
            "gc",
            "GC",
            "gc*=DEBUG",
            "gc+heap*=trace",
            "gc=debug,safepoint=off:stderr",
            "all=info",
            "::",
            ":::::",
            "disable",
            "gc*:stdout:Time",
            "gc*:stdout:t,u",
            "gc:gc.log",
            "gc*:file=gc.log:none",
            "gc:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m",
            r#"gc*:file="C:\gc.log":time"#,
            r"gc*:file=C:\logs\gc.log:time,uptime:filecount=5",
            "gc:d:/gc.log",
            "gc*:file=C:logsgc.log:time",
            "gc*,safepoint:file=gc-%p-%t.log:utctime,pid,tags:filecount=0",
        ] {
            assert_eq!(why(Release(17), taken), None, "{taken}");
        }
        for (refused, words) in [
            ("gc=foo", "'foo' is not a level"),
            ("gcc", "'gcc' is not a tag"),
            ("gc+cpu+nosuch", "'nosuch' is not a tag"),
            ("gc*+heap", "'gc*' is not a tag"),
            ("gc,,safepoint", "'' is not a tag"),
            ("gc*,", "'' is not a tag"),
            ("gc+heap+gc", "appears twice"),
            ("gc:file=x.log:time,foo", "'foo' is not a decoration"),
            ("gc:stdout:none,time", "'none' is not a decoration"),
            ("gc:file=x.log:time:foo=1", "'foo' is not an option"),
            ("gc:file=x.log::filecount=1001", "'1001' is not a number"),
            ("gc:file=x.log::filesize=20MB", "'20MB' is not a size"),
            ("gc:file=", "file is missing"),
            ("gc:pipe=x", "'pipe' is not a type of output"),
            ("async:drop", "'drop' is not a mode"),
            (r"gc:file=C:\gc.log:foo", "'foo' is not a decoration"),
        ] {
            let why = why(Release(17), refused).unwrap_or_default();
            assert!(why.contains(words), "{refused}: {why}");
        }
        // Each release has its own; of one that was not asked any is taken.
        assert!(is_tag(Release(11), "biasedlocking") && !is_tag(Release(21), "biasedlocking"));
        assert!(is_tag(Release(19), "biasedlocking"));
    }
}
