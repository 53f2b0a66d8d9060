//! GC logs beside other files of their JVM.

use std::path::PathBuf;

use rungwise_gclog::evidence;
use rungwise_host::clock;
use rungwise_model::check::CheckedJvm;

use crate::file_type::{Read, Span};

/// What logs say, to be judged together with other files.
pub(crate) fn of_files(paths: &[PathBuf]) -> anyhow::Result<Read> {
    let mut log = super::read(paths, None, &mut |_| {})?;
    log.quote()?;
    let runs = &log.summary.runs;
    let spans = runs.iter().filter_map(|run| {
        let (from, seconds) = run.began_unix_ms.zip(run.seconds)?;
        Some((from, from.saturating_add((seconds * 1e3) as i64)))
    });
    let time = spans.reduce(|all, run| (all.0.min(run.0), all.1.max(run.1)));
    let utc = |ms: i64| clock::utc(ms.saturating_mul(1_000_000));
    Ok(Read {
        evidence: evidence(&log.summary),
        time: time.map_or_else(Span::default, |(from, to)| Span {
            from: utc(from),
            to: utc(to),
        }),
        jvm: CheckedJvm {
            notes: log.notes,
            ..CheckedJvm::default()
        },
    })
}
