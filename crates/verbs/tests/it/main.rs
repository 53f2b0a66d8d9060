//! Verbs called in-process, as a pipeline or a web page calls them.

use std::cell::RefCell;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, files};
use rungwise_model::Exit;
use rungwise_verbs::check::Checked;
use rungwise_verbs::documents::{self, Form, Format, Stored};
use rungwise_verbs::{
    Invocation, Observer, capture, check, explain, jvm, knob, load, problem, serve,
};

/// Keeps what it hears.
#[derive(Default)]
struct Heard(RefCell<Vec<String>>);

impl Observer for Heard {
    fn say(&self, line: &str) {
        self.0.borrow_mut().push(line.to_owned());
    }
}

/// Calls a verb with an observer of its own, and a flag that is raised already where `stopped`.
fn called<T>(
    stopped: bool,
    verb: impl FnOnce(&Invocation<'_>) -> anyhow::Result<T>,
) -> (anyhow::Result<T>, Vec<String>) {
    let heard = Heard::default();
    let interrupt = || {
        let interrupt = Interrupt::without_signals()?;
        if stopped {
            interrupt.raise();
        }
        Ok(interrupt)
    };
    let invocation = Invocation {
        observer: &heard,
        interrupt: &interrupt,
        runs: Path::new("runs"),
        command: vec!["a test".to_owned()],
    };
    let result = verb(&invocation);
    (result, heard.0.into_inner())
}

#[derive(Parser)]
struct Line<T: clap::Args> {
    #[command(flatten)]
    request: T,
}

/// A request, as a command line has it.
fn request<T: clap::Args>(line: &[&str]) -> T {
    let words = ["verb"].iter().chain(line);
    Line::parse_from(words).request
}

fn log() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gclog/corpus/own_jdk8-cms-cmf.log")
}

#[test]
fn a_log_is_judged_and_its_document_is_drawn_again_in_every_format() {
    let request: jvm::gc::Request = request(&[log().to_str().unwrap()]);
    let (report, heard) = called(false, |invocation| jvm::gc::run(&request, invocation));
    let report = report.unwrap();
    assert_eq!(report.envelope.exit, Exit::Failed);
    assert_eq!(report.envelope.command, ["a test"]);
    assert!(heard.is_empty(), "{heard:?}");
    let form = |format| Form {
        format,
        width: 100,
        color: false,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gc.json");
    let json = documents::render(&report, form(Format::Json)).unwrap();
    files::replace(&path, json.as_bytes()).unwrap();
    let stored = Stored::read(&path).unwrap();
    for format in [Format::Text, Format::Html, Format::Markdown, Format::Json] {
        let again = stored.render(form(format), &Heard::default()).unwrap();
        assert_eq!(again, documents::render(&report, form(format)).unwrap());
    }
}

#[test]
fn an_answer_that_is_one_text_is_drawn_again_as_it_was() {
    #[derive(Parser)]
    struct Knob {
        #[command(subcommand)]
        request: knob::Request,
    }
    let folder = tempfile::tempdir().unwrap();
    let list = Knob::parse_from(["knob", "list"]).request;
    let show = Knob::parse_from(["knob", "show", "net.rps_cpus"]).request;
    let rule = request(&["udp-socket-lock"]);
    let serve = request(&["--listen", "127.0.0.1:0", "--for", "100ms"]);
    let state = folder.path().join("state");
    let printed = called(false, |invocation| {
        let mut ready = None;
        let served = serve::udp(
            &serve,
            &mut |address| {
                ready = Some(address);
                Ok(())
            },
            &mut |within| {
                assert_eq!(within, Some(Duration::from_millis(100)));
                Exit::Done
            },
            invocation,
        )?;
        assert!(ready.is_some());
        Ok([
            served,
            explain::run(&rule, invocation)?,
            knob::run(&list, Some(&state), invocation)?,
            knob::run(&show, Some(&state), invocation)?,
        ])
    });
    for printed in printed.0.unwrap() {
        let path = folder.path().join("answer.json");
        files::replace(&path, printed.json.as_bytes()).unwrap();
        let stored = Stored::read(&path).unwrap();
        assert_eq!(stored.kind, printed.kind);
        for format in [Format::Text, Format::Html, Format::Markdown] {
            let form = Form {
                format,
                width: 80,
                color: false,
            };
            let again = stored.render(form, &Heard::default()).unwrap();
            assert_eq!(again, printed.text, "{}", printed.kind);
        }
    }
}

#[test]
fn a_check_tells_what_its_target_is() {
    let path = log();
    let request: check::Request = request(&[path.to_str().unwrap()]);
    let (checked, _) = called(false, |invocation| check::run(&request, invocation));
    assert!(matches!(checked.unwrap(), Checked::GcLog(_)));
}

#[test]
fn a_capture_ends_early_where_it_is_asked_to_and_keeps_what_it_has() {
    let request: capture::Request = request(&["--for", "60s", "--no-stacks"]);
    let began = clock::now();
    let (captured, heard) = called(true, |invocation| capture::run(&request, invocation));
    let captured = captured.unwrap();
    assert_eq!(captured.exit, Exit::Interrupted);
    assert!(captured.samples >= 2, "{}", captured.samples);
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(heard[0].starts_with("sampling this host for"), "{heard:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.rungwise");
    files::replace(&path, &captured.packed).unwrap();
    let request: check::Request = self::request(&[path.to_str().unwrap()]);
    let (checked, _) = called(false, |invocation| check::run(&request, invocation));
    assert!(matches!(checked.unwrap(), Checked::Host(_)));
}

#[test]
fn a_load_that_is_stopped_has_the_exit_status_of_an_interruption() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = socket.local_addr().unwrap().to_string();
    let request: load::Request = request(&["udp", &target, "--for", "60s"]);
    let began = clock::now();
    let (measured, _) = called(true, |invocation| load::run(&request, invocation));
    assert_eq!(problem::exit_of(&measured.unwrap_err()), Exit::Interrupted);
    assert!(began.elapsed() < Duration::from_secs(30));
}
