//! Where a `HotSpot` JVM writes its log, as `VM.log list` prints it (JDK 9 and later).
//!
//! `#2: file=/var/log/gc.log all=off,gc*=info,gc+tlab=debug uptime,level,tags filecount=5,filesize=20480K`. Sources:
//! `share/logging/logConfiguration.cpp` (`describe_current_configuration`), `logFileOutput.cpp` (placeholders of a name).

/// One output of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// `stdout`, `stderr` or `file=/var/log/gc.log`; placeholders of a file's name are as they were written.
    pub name: String,
    /// What is written: `all=off,gc*=info,gc+tlab=debug`.
    selection: String,
}

/// The outputs, in the order of their numbers; empty if no line has one.
pub fn outputs(text: &str) -> Vec<Output> {
    text.lines().filter_map(output).collect()
}

fn output(line: &str) -> Option<Output> {
    let (number, rest) = line.trim().strip_prefix('#')?.split_once(": ")?;
    number.parse::<u32>().ok()?;
    // A file's name may contain spaces; the selection contains none, and its levels follow an equals sign.
    let kind = if rest.starts_with("file=") { 5 } else { 0 };
    let equals = kind + rest[kind..].find('=')?;
    let begin = rest[..equals].rfind(' ')?;
    let selection = rest[begin + 1..].split(' ').next()?;
    Some(Output {
        name: rest[..begin].trim_matches('"').to_owned(),
        selection: selection.to_owned(),
    })
}

impl Output {
    /// The name of its file; none of a standard stream.
    pub fn file(&self) -> Option<&str> {
        self.name.strip_prefix("file=")
    }

    /// Messages with exactly these tags are written at this level or a finer one.
    pub fn has(&self, tags: &[&str], level: &str) -> bool {
        const LEVELS: [&str; 6] = ["off", "error", "warning", "info", "debug", "trace"];
        let rank = |level: &str| LEVELS.iter().position(|one| *one == level);
        let of = |part: &str| {
            let (selected, level) = part.split_once('=')?;
            let (wanted, more) = match selected.strip_suffix('*') {
                Some(wanted) => (wanted, true),
                None => (selected, selected == "all"),
            };
            let mut wanted = wanted.split('+').filter(|tag| *tag != "all");
            let number = wanted.clone().count();
            let fits = wanted.all(|tag| tags.contains(&tag)) && (more || number == tags.len());
            fits.then(|| rank(level))?
        };
        // The last that fits decides.
        let found = self.selection.split(',').filter_map(of).next_back();
        found >= rank(level) && found > Some(0)
    }

    /// Whether a file with this absolute path may be the output, whose name may have placeholders (`%p`, `%t`, from JDK 20 on `%hn`) and may be
    /// relative to a folder that is not known.
    pub fn is_at(&self, path: &str) -> bool {
        let Some(name) = self.file() else {
            return false;
        };
        let name = name.strip_prefix("./").unwrap_or(name);
        let depth = name.matches('/').count();
        let tail = if name.starts_with('/') {
            Some(path)
        } else {
            let mut slashes = path.rmatch_indices('/');
            slashes.nth(depth).map(|(at, _)| &path[at + 1..])
        };
        let pattern = name.replace("%hn", "\0").replace("%p", "\0");
        let pattern = pattern.replace("%t", "\0");
        let pieces: Vec<&str> = pattern.split('\0').collect();
        tail.is_some_and(|tail| fits(&pieces, tail))
    }
}

/// Whether `text` is these pieces with something between them.
fn fits(pieces: &[&str], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else {
        return pieces == [text];
    };
    let inner = text.strip_prefix(first);
    let Some(mut inner) = inner.and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    for piece in middle {
        match inner.find(piece) {
            Some(at) => inner = &inner[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JDK 17.
    const LIST: &str = "Available log levels: off, trace, debug, info, warning, error\n\
        Described tag sets:\n logging: Logging for the log framework itself\n\
        Log output configuration:\n \
        #0: stdout all=warning uptime,level,tags\n \
        #1: stderr all=off uptime,level,tags\n \
        #2: file=/tmp/gc log/gc-%p-%t.log all=off,gc*=info,gc+tlab=debug,gc+age*=off uptime,level,tags filecount=5,filesize=20480K,async=false\n";

    #[test]
    fn outputs_have_a_name_and_levels_by_tag() {
        let outputs = outputs(LIST);
        let names: Vec<&str> = outputs.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["stdout", "stderr", "file=/tmp/gc log/gc-%p-%t.log"]);
        let [stdout, stderr, file] = &outputs[..] else {
            panic!("{outputs:?}");
        };
        assert_eq!((stdout.file(), stderr.file()), (None, None));
        for (output, tags, level, has) in [
            (file, &["gc"][..], "info", true),
            (file, &["gc"], "debug", false),
            (file, &["gc", "heap"], "info", true),
            (file, &["gc", "tlab"], "debug", true),
            (file, &["gc", "tlab"], "trace", false),
            (file, &["gc", "age"], "info", false),
            (file, &["safepoint"], "error", false),
            (stdout, &["gc"], "warning", true),
            (stdout, &["gc"], "info", false),
            (stderr, &["gc"], "off", false),
        ] {
            assert_eq!(
                output.has(tags, level),
                has,
                "{} {tags:?} {level}",
                output.name
            );
        }
        assert_eq!(
            super::outputs("#x: y\n# 1: stdout all=off\n#1: stdout\n"),
            []
        );
    }

    #[test]
    fn a_file_is_known_by_its_name_and_placeholders() {
        let of = |name: &str| Output {
            name: format!("file={name}"),
            selection: String::new(),
        };
        for (name, path, is_it) in [
            ("/tmp/gc.log", "/tmp/gc.log", true),
            ("/tmp/gc.log", "/tmp/gc.log.0", false),
            ("/tmp/gc.log", "/x/tmp/gc.log", false),
            ("gc.log", "/srv/app/gc.log", true),
            ("gc.log", "/srv/app/old-gc.log", false),
            ("./logs/gc.log", "/srv/app/logs/gc.log", true),
            ("logs/gc.log", "/gc.log", false),
            ("/l/gc-%p-%t.log", "/l/gc-812-2026-11-26_10-00-00.log", true),
            ("/l/gc-%p.log", "/l/gc-812.log.1", false),
            ("%p%t%hn", "/l/x", true),
        ] {
            assert_eq!(of(name).is_at(path), is_it, "{name} {path}");
        }
    }
}
