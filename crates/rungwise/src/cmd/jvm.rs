//! `rungwise jvm`: one answer per question, and a log that is followed line by line.

use std::io::{ErrorKind, Write as _};
use std::ops::ControlFlow;
use std::time::Duration;

use rungwise_model::gc::GcReport;
use rungwise_model::gc_follow::FollowLine;
use rungwise_model::{Exit, units};
use rungwise_report::gc::follow as page;
use rungwise_verbs::Observer as _;
use rungwise_verbs::documents::Format;
use rungwise_verbs::jvm::gc::follow::{self, Following};
use rungwise_verbs::jvm::{flags, gc, heap_per_request, jfr, threads};
use rungwise_verbs::runs::store;

use super::{Global, Kept};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Question {
    /// Judge the options of a JVM, or move them to another JDK.
    Flags(Kept<flags::Request>),
    /// Analyse GC logs: findings, pauses, memory.
    Gc(Gc),
    /// Measure how many bytes of heap one HTTP request costs.
    HeapPerRequest(Kept<heap_per_request::Request>),
    /// Analyse a Flight Recorder file: hot methods, allocation, locks, I/O, exceptions.
    Jfr(Kept<jfr::Request>),
    /// Analyse thread dumps: deadlocks, contended locks and pools, hot threads.
    Threads(Kept<threads::Request>),
}

// Without a doc comment: the help text is that of the request.
#[derive(Debug, clap::Args)]
pub(crate) struct Gc {
    #[command(flatten)]
    request: gc::Request,
    /// Keep reading while the log is written, through rotations and restarts, and print collections and findings as
    /// they appear; the report comes at the end (Ctrl-C or --for).
    #[arg(long)]
    follow: bool,
    /// End --follow after this time, such as 10m.
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration, requires = "follow")]
    length: Option<Duration>,
    /// Keep the document, its page and checksums in a run folder below --runs.
    #[arg(long)]
    keep: bool,
}

pub(super) fn run(question: &Question, global: &Global) -> anyhow::Result<Exit> {
    let invocation = &global.invocation();
    match question {
        Question::Flags(Kept { request, keep }) => {
            global.finish(&mut flags::run(request, invocation)?, *keep)
        }
        Question::HeapPerRequest(Kept { request, keep }) => {
            global.finish(&mut heap_per_request::run(request, invocation)?, *keep)
        }
        Question::Jfr(Kept { request, keep }) => {
            global.finish(&mut jfr::run(request, invocation)?, *keep)
        }
        Question::Threads(Kept { request, keep }) => {
            global.finish(&mut threads::run(request, invocation)?, *keep)
        }
        Question::Gc(args) if args.follow => follow(args, global),
        Question::Gc(args) => global.finish(&mut gc::run(&args.request, invocation)?, args.keep),
    }
}

/// Prints collections and findings as they come, and the report at the end.
fn follow(args: &Gc, global: &Global) -> anyhow::Result<Exit> {
    // For a script: every collection, as JSON. The name of the file that the report goes to says nothing of the rows.
    let is_json = global.format == Some(Format::Json);
    let limit_ms = args.request.slo.map(|slo| slo.as_secs_f64() * 1e3);
    let mut each = |lines: &[FollowLine]| {
        let text = rows(lines, is_json, limit_ms, global);
        show(&text, global)
    };
    let following = Following {
        length: args.length,
        from_start: is_json,
        each: &mut each,
    };
    let report = follow::run(&args.request, following, &global.invocation())?;
    if is_json && global.output.is_none() {
        return as_row(report, args.keep, global);
    }
    // Between the rows and the report.
    if global.format() == Format::Text && global.output.is_none() && !global.quiet {
        global.emit("\n")?;
    }
    let mut report = report;
    global.finish(&mut report, args.keep)
}

fn rows(lines: &[FollowLine], is_json: bool, limit_ms: Option<f64>, global: &Global) -> String {
    let color = global.color_on(&std::io::stdout());
    let mut text = String::new();
    for line in lines {
        let row = if is_json {
            // Plain data: it cannot fail.
            Some(serde_json::to_string(line).unwrap_or_default())
        } else {
            page::line(line, limit_ms, color)
        };
        if let Some(row) = row {
            text += &row;
            text.push('\n');
        }
    }
    text
}

/// A broken pipe is a normal end.
fn show(text: &str, global: &Global) -> ControlFlow<()> {
    if text.is_empty() || global.quiet {
        return ControlFlow::Continue(());
    }
    let written = match global.format() {
        // Standard output is for the page alone, unless that goes to a file.
        Format::Html | Format::Markdown | Format::Sarif if global.output.is_none() => {
            std::io::stderr().write_all(text.as_bytes())
        }
        _ => {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        }
    };
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

/// The report as the last row of those before it.
fn as_row(mut report: GcReport, keep: bool, global: &Global) -> anyhow::Result<Exit> {
    let exit = report.envelope.exit;
    if keep {
        let path = store::keep(&mut report, &[], &global.runs)?;
        global.say(&format!("kept: rungwise report {}", path.display()));
    }
    let row = serde_json::to_string(&FollowLine::Report(Box::new(report)))?;
    global.emit(&(row + "\n"))?;
    Ok(exit)
}
