//! A host in texts: a capture as texts that people read, write and review.
//!
//! A folder with `capture.json` (the machine, the process that is judged, the host that it is like) and texts.
//! In a text, a line `@ SECONDS WHAT` starts the contents of that source in that sample, up to the next such line:
//!
//! ```text
//! Before the first mark stands the story.
//! @ 0,10 /proc/sys/net/core/netdev_budget                     the same in two samples
//! @ 10 /sys/class/net/eth0/queues/rx-{0-19}/rps_cpus          the same in twenty files
//! @ 10 /proc/schedstat ENOENT                                 a file that could not be read, and why
//! @ 10 audit                                                  an answer, as JSON
//! ```
//!
//! Texts are read in the order of their names, and later ones take precedence. So a host that is `like` another lists
//! only the differences.

use std::path::Path;

use rungwise_host::files;
use rungwise_model::kernel::Answer;
use rungwise_model::machine::Machine;
use serde::Deserialize;

use crate::capture::{Capture, Moment, Process, Raw, Reply};
use crate::{Error, Result};

/// What makes a folder a host in texts.
pub(crate) const ABOUT: &str = "capture.json";

/// Start of a mark; no file that a probe reads has such a line.
const MARK: &str = "@ ";

/// Limit of a text: 64 MiB, longer than any written by hand.
const LONGEST: u64 = 64 << 20;

/// The most that one range stands for: more than any machine has CPUs.
const MOST: u64 = 8192;

/// `capture.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    machine: Machine,
    #[serde(default)]
    process: Option<Process>,
    /// The folder beside this one whose texts come first.
    #[serde(default)]
    like: Option<String>,
}

/// Reads a host in texts.
pub(crate) fn read(top: &Path) -> Result<Capture> {
    let path = top.join(ABOUT);
    let about: About =
        serde_json::from_slice(&own(&path)?).map_err(|error| wrong(&path, error.to_string()))?;
    let mut capture = Capture {
        taken: None,
        machine: about.machine,
        service: None,
        process: about.process,
        sampler: None,
        moments: Vec::new(),
        samples: Vec::new(),
    };
    if let Some(like) = &about.like {
        if like.contains('/') || like.starts_with('.') {
            let why = format!("\"like\" names a folder beside this one, not {like}");
            return Err(wrong(&path, why));
        }
        texts(&top.with_file_name(like), &mut capture)?;
    }
    texts(top, &mut capture)?;
    Ok(capture)
}

/// Adds the contents of the texts in `folder`.
fn texts(folder: &Path, capture: &mut Capture) -> Result<()> {
    let mut names = files::list(folder).map_err(|error| wrong(folder, error.to_string()))?;
    names.sort();
    for path in names.iter().map(|name| folder.join(name)) {
        if path.extension().is_none_or(|end| end != "txt") {
            continue;
        }
        let text = String::from_utf8_lossy(&own(&path)?).into_owned();
        parse(&text, capture).map_err(|why| wrong(&path, why))?;
    }
    Ok(())
}

/// Reads a file of the folder itself: links are not followed and pipes not opened, since the folder may be untrusted.
fn own(path: &Path) -> Result<Vec<u8>> {
    if !files::is_plain(path) {
        return Err(wrong(path, "it is a link or not a regular file".to_owned()));
    }
    let bytes = files::read_at_most(path, LONGEST + 1)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Error::TooLarge {
            path: path.to_owned(),
            limit: LONGEST,
        });
    }
    Ok(bytes)
}

fn wrong(path: &Path, why: String) -> Error {
    Error::NotABundle {
        path: path.to_owned(),
        why,
    }
}

/// Adds the contents of `text` to the samples of `capture`; the reason if it cannot be parsed.
pub fn parse(text: &str, capture: &mut Capture) -> std::result::Result<(), String> {
    // The story before the first mark is for people.
    for part in format!("\n{text}").split(&format!("\n{MARK}")).skip(1) {
        let (mark, body) = part.split_once('\n').unwrap_or((part, ""));
        let because = |why: &str| format!("\"{MARK}{mark}\": {why}");
        let mut words = mark.splitn(3, ' ');
        let (Some(times), Some(what)) = (words.next(), words.next()) else {
            return Err(because("a mark needs a time and a file or question"));
        };
        let failed = words.next().map(str::to_owned);
        let seconds: Vec<f64> = times
            .split(',')
            .map(|time| time.parse().ok().filter(|at: &f64| at.is_finite()))
            .collect::<Option<_>>()
            .ok_or_else(|| because("times must be seconds, separated by commas"))?;
        if what.starts_with('/') {
            let raw = match failed {
                Some(failed) => Raw::Failed { failed },
                None => Raw::Text(format!("{}\n", body.trim_end_matches('\n'))),
            };
            let paths = spread(what).ok_or_else(|| because("write a range as {0-19}"))?;
            for at_s in seconds {
                let moment = moment_at(capture, at_s);
                for path in &paths {
                    moment.files.insert(path.clone(), raw.clone());
                }
            }
        } else {
            let reply = match failed {
                Some(failed) => Reply::Failed(failed),
                None => Reply::Answer(answer(what, body).map_err(|why| because(&why))?),
            };
            for at_s in seconds {
                let answers = &mut moment_at(capture, at_s).answers;
                answers.insert(what.to_owned(), reply.clone());
            }
        }
    }
    Ok(())
}

/// The sample at `at_s`, in order among the others.
fn moment_at(capture: &mut Capture, at_s: f64) -> &mut Moment {
    let moments = &mut capture.moments;
    let place = moments.partition_point(|moment| moment.at_s < at_s);
    if moments.get(place).is_none_or(|moment| moment.at_s > at_s) {
        let moment = Moment {
            at_s,
            ..Moment::default()
        };
        moments.insert(place, moment);
    }
    &mut moments[place]
}

/// The answer to `question`, which the text contains without its name.
fn answer(question: &str, body: &str) -> std::result::Result<Answer, String> {
    let value: serde_json::Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let named = serde_json::Map::from_iter([(question.to_owned(), value)]);
    serde_json::from_value(named.into()).map_err(|error| error.to_string())
}

/// The paths that `path` expands to: each `{0-19}` is replaced by the numbers from 0 to 19.
fn spread(path: &str) -> Option<Vec<String>> {
    let Some((head, rest)) = path.split_once('{') else {
        return Some(vec![path.to_owned()]);
    };
    let (range, tail) = rest.split_once('}')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let tails = spread(tail)?;
    let many = last.checked_sub(first)?.checked_mul(tails.len() as u64)?;
    (many < MOST).then(|| {
        (first..=last)
            .flat_map(|number| {
                tails
                    .iter()
                    .map(move |tail| format!("{head}{number}{tail}"))
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture_of(text: &str) -> Capture {
        let mut capture = Capture::default();
        parse(text, &mut capture).unwrap();
        capture
    }

    fn text(capture: &Capture, sample: usize, path: &str) -> String {
        match &capture.moments[sample].files[path] {
            Raw::Text(text) => text.clone(),
            Raw::Failed { failed } => format!("! {failed}"),
        }
    }

    #[test]
    fn samples_are_in_the_order_of_time_however_they_are_written() {
        let capture = capture_of("A story.\n@ 10 /b\n2\n@ 0,10 /a\n1\n@ 5 /b\n3\n");
        let at: Vec<f64> = capture.moments.iter().map(|moment| moment.at_s).collect();
        assert_eq!(at, [0.0, 5.0, 10.0]);
        assert_eq!(text(&capture, 0, "/a"), "1\n");
        assert_eq!(text(&capture, 2, "/a"), "1\n");
        assert_eq!(text(&capture, 1, "/b"), "3\n");
    }

    #[test]
    fn a_range_stands_for_many_files() {
        let capture = capture_of("@ 0 /cpu{8-11}/state{0-1}/time\n7\n");
        let paths: Vec<&String> = capture.moments[0].files.keys().collect();
        assert_eq!(paths.len(), 8);
        assert_eq!(paths[0], "/cpu10/state0/time");
        for bad in ["/{3-1}", "/{a-b}", "/{1", "/{0-99999}", "/{0-900}/{0-900}"] {
            assert_eq!(spread(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_could_not_be_read_is_reported_with_its_reason() {
        let capture = capture_of("@ 0 /proc/schedstat ENOENT\n@ 0 audit EPERM\n");
        assert_eq!(text(&capture, 0, "/proc/schedstat"), "! ENOENT");
        let refused = Reply::Failed("EPERM".to_owned());
        assert_eq!(capture.moments[0].answers["audit"], refused);
    }

    #[test]
    fn an_answer_is_json_without_its_name() {
        let capture = capture_of("@ 0 audit\n{\"enabled\":1,\"pid\":7,\"lost\":0,\"backlog\":0}\n");
        let Reply::Answer(Answer::Audit(audit)) = &capture.moments[0].answers["audit"] else {
            panic!("{:?}", capture.moments[0].answers);
        };
        assert_eq!((audit.enabled, audit.pid), (1, 7));
        let refused = parse("@ 0 nonsense\n{}\n", &mut Capture::default()).unwrap_err();
        assert!(refused.contains("nonsense"), "{refused}");
    }

    #[test]
    fn a_host_that_is_like_another_is_described_by_what_differs() {
        let top = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = top.path().join(path);
            files::create_dir_all(path.parent().unwrap()).unwrap();
            files::replace(&path, text.as_bytes()).unwrap();
        };
        let machine = serde_json::to_string(&Machine::default()).unwrap();
        put("one/capture.json", &format!(r#"{{"machine":{machine}}}"#));
        put(
            "one/b.txt",
            "@ 0,10 /proc/stat\nb\n@ 10 /proc/cmdline\nquiet\n",
        );
        put("one/a.txt", "@ 0 /proc/stat\na\n");
        let like = |name: &str| format!(r#"{{"machine":{machine},"like":"{name}"}}"#);
        put("two/capture.json", &like("one"));
        put("two/c.txt", "@ 10 /proc/stat\nc\n");
        let one = read(&top.path().join("one")).unwrap();
        assert_eq!(text(&one, 0, "/proc/stat"), "b\n");
        let two = read(&top.path().join("two")).unwrap();
        assert_eq!(text(&two, 0, "/proc/stat"), "b\n");
        assert_eq!(text(&two, 1, "/proc/stat"), "c\n");
        assert_eq!(text(&two, 1, "/proc/cmdline"), "quiet\n");
        for outside in ["../one", "/etc", ".."] {
            put("two/capture.json", &like(outside));
            assert!(read(&top.path().join("two")).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(@ |[0-9],?|/|\\{|\\}|-| |audit|\n|EPERM|.){0,40}") {
            let _ = parse(&text, &mut Capture::default());
        }
    }
}
