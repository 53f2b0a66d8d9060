//! What each fuzz target does, as functions, so that a stable compiler can replay and shake the seeds too.
//!
//! A target takes any bytes. Beside not panicking it holds what must be true of the result.

#[path = "../../crates/rules/tests/it/book.rs"]
#[expect(
    dead_code,
    reason = "the tests of the rules read the folder of casebooks and compare outcomes as well"
)]
mod book;
mod dubbo;
mod gc_log;
mod hosts;
mod http2;
mod kernel_texts;
mod profile;
mod recording;
mod stored;
mod stream_replies;
mod thread_dump;

pub use dubbo::dubbo;
pub use gc_log::{gc_log, gc_log_once};
pub use hosts::{bundle, casebook};
pub use http2::http2;
pub use kernel_texts::kernel_texts;
pub use profile::profile;
pub use recording::recording;
pub use stored::stored;
pub use stream_replies::stream_replies;
pub use thread_dump::thread_dump;

use rungwise_experiment::scenario::Scenario;
use rungwise_knobs::journal;
use rungwise_load::dns;
use rungwise_load::http::lists::{Entry, Target, har, jmx, jsonl};
use rungwise_load::http::response::{Progress, Response};
use rungwise_load::http::script::Step;
use rungwise_serve::http::{Event, Facts, LONGEST_HEAD, Request};

/// The journal that recovery reads after a crash: whatever is on disk, what is trusted was written whole.
pub fn journal(bytes: &[u8]) {
    trusted(bytes);
    // Few changed lines keep a matching checksum, so the reader behind it is reached by making one.
    trusted(&with_checksums(bytes));
}

fn trusted(bytes: &[u8]) {
    let found = journal::read(bytes);
    assert!(found.whole <= bytes.len(), "more trusted than there is");
    // Cutting at the last trusted byte takes nothing away from what is trusted.
    let again = journal::read(&bytes[..found.whole]);
    assert_eq!(
        again.pending.len(),
        found.pending.len(),
        "the trusted part reads differently alone"
    );
}

/// The same lines, each with the checksum that its content has.
fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    const PREFIX: usize = "{\"crc\":\"1c291ca3\",".len();
    let mut fixed = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let (content, end) = match line {
            [content @ .., b'\n'] => (content, &b"\n"[..]),
            content => (content, &b""[..]),
        };
        let covered = content.get(PREFIX..).unwrap_or_default();
        fixed.extend(format!("{{\"crc\":\"{:08x}\",", crc32fast::hash(covered)).bytes());
        fixed.extend(covered);
        fixed.extend(end);
    }
    fixed
}

/// The scenario file that a person writes.
pub fn scenario(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Err(problems) = Scenario::parse(text, "fuzz.toml")
    {
        assert!(
            !problems.to_string().is_empty(),
            "a refusal without a reason"
        );
    }
}

/// The responses of a web server, in two pieces and in small ones: both ways must read the same.
pub fn http_response(bytes: &[u8]) {
    let [cut, size, rest @ ..] = bytes else {
        return;
    };
    let to_head = cut & 1 == 1;
    let (first, second) = rest.split_at((usize::from(*cut) * rest.len()) >> 8);
    let two = response_of(to_head, [first, second].into_iter());
    let small = response_of(to_head, rest.chunks(usize::from(*size).max(1)));
    assert_eq!(two, small, "pieces change what is read");
}

/// A list of requests, as people write it and as browsers record it: what is read can stand in a request.
pub fn http_lists(bytes: &[u8]) {
    let target = Target {
        origin: "http://192.0.2.1:8080",
        host: Some("shop.example"),
    };
    let written = jsonl::parse("fuzz.jsonl", bytes, &target).unwrap_or_default();
    let recorded = [false, true].map(|timing| {
        let listed = har::parse("fuzz.har", bytes, &target, timing, timing);
        let listed = listed.unwrap_or_default();
        assert!(listed.reasons().len() <= listed.skipped.len());
        listed.entries
    });
    fit_requests(written.iter().chain(recorded.iter().flatten()));
}

/// A test plan of JMeter: what is read can stand in a request, and every user's way leads through requests that there are.
pub fn http_plan(bytes: &[u8]) {
    let read = |file: &str| match file.len() % 3 {
        0 => Err("there is none".to_owned()),
        _ => Ok(b"a,b\n1,2\n".to_vec()),
    };
    let properties = [("users".to_owned(), "3".to_owned())];
    let target = Target {
        origin: "http://192.0.2.1:8080",
        host: Some("shop.example"),
    };
    for target in [None, Some(target)] {
        let Ok(plan) = jmx::parse(&jmx::Source {
            file: "fuzz.jmx",
            bytes,
            properties: &properties,
            target,
            expects: false,
            read: &read,
        }) else {
            return;
        };
        assert!(plan.listed.reasons().len() <= plan.listed.skipped.len());
        fit_requests(plan.listed.entries.iter());
        for group in &plan.groups {
            let mut sends = false;
            for (at, step) in group.steps.iter().enumerate() {
                match step {
                    Step::Send(message) => {
                        assert!(*message < plan.listed.entries.len());
                        sends = true;
                    }
                    // Back for another pass, or ahead: a way without a request would have no end.
                    Step::Again { to, .. } => {
                        let body = &group.steps[*to..at];
                        assert!(body.iter().any(|step| matches!(step, Step::Send(_))));
                    }
                    Step::Once { to, .. } => assert!(*to > at && *to <= group.steps.len()),
                    Step::Row(row) => assert!(row.table < plan.data.len()),
                    Step::Wait(_) | Step::Forget => {}
                }
            }
            assert!(sends && group.users > 0, "{group:?}");
        }
    }
}

fn fit_requests<'e>(entries: impl Iterator<Item = &'e Entry>) {
    for entry in entries {
        let is_path = entry.path.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(entry.path.starts_with('/') && is_path, "{entry:?}");
        assert!(!entry.method.is_empty(), "{entry:?}");
        for header in &entry.headers {
            let line = header.to_string();
            assert!(!line.contains(['\r', '\n']), "{line:?}");
        }
    }
}

/// Status, body, whether the connection is kept, and how many bytes were taken; absent where it is refused or not complete.
fn response_of<'b>(
    to_head: bool,
    pieces: impl Iterator<Item = &'b [u8]>,
) -> Option<(u16, Vec<u8>, bool, usize)> {
    let mut response = Response::new(to_head);
    let (mut body, mut taken) = (Vec::new(), 0);
    for piece in pieces {
        match response.feed(piece, &mut |bytes| body.extend_from_slice(bytes)) {
            Ok(Progress::More) => taken += piece.len(),
            Ok(Progress::Done(used)) => {
                assert!(used <= piece.len(), "more taken than there is");
                let kept = response.keeps_connection();
                return Some((response.status(), body, kept, taken + used));
            }
            Err(_) => return None,
        }
    }
    response
        .ends()
        .then(|| (response.status(), body, response.keeps_connection(), taken))
}

/// The requests of a web client, in pieces: first byte where the first of two ends, in 256ths; second byte the size of the others.
pub fn http_request(bytes: &[u8]) {
    let [cut, size, rest @ ..] = bytes else {
        return;
    };
    // A line that is not whole is looked at once, and again when it is.
    let rest = [rest, b"\n"].concat();
    let first = (usize::from(*cut) * rest.len()) >> 8;
    let two = requests_of(&rest, [first, rest.len()].into_iter());
    let size = usize::from(*size).max(1);
    let small = requests_of(
        &rest,
        (1..=rest.len().div_ceil(size)).map(|piece| rest.len().min(piece * size)),
    );
    assert_eq!(two, small, "pieces change what is read");
}

/// The requests in `bytes`, of which more arrives until each of `ends`; and the bytes taken, or none where they are refused.
fn requests_of(bytes: &[u8], ends: impl Iterator<Item = usize>) -> (Vec<Facts>, Option<usize>) {
    let (mut request, mut found, mut at) = (Request::default(), Vec::new(), 0);
    for end in ends {
        loop {
            let Ok((taken, event)) = request.read(&bytes[at..end]) else {
                return (found, None);
            };
            assert!(taken <= end - at, "more taken than there is");
            at += taken;
            match event {
                Event::Partial => break,
                Event::Expectation => assert!(taken > 0, "nothing is expected for ever"),
                Event::Complete(facts) => found.push(facts),
            }
        }
        assert!(
            end - at <= LONGEST_HEAD,
            "more is kept than a head may have"
        );
    }
    (found, Some(at))
}

/// dnsperf's query-file format.
pub fn dns_query_file(bytes: &[u8]) {
    if let Ok(queries) = dns::parse(bytes) {
        assert!(!queries.is_empty(), "a file without queries was accepted");
        for query in queries {
            // Header, name, type and class: RFC 1035, section 2.3.4 limits the name to 255 bytes.
            assert!(
                (12 + 1 + 4..=12 + 255 + 4).contains(&query.wire().len()),
                "no legal query"
            );
        }
    }
}

/// A datagram that claims to answer a query.
pub fn dns_reply(bytes: &[u8]) {
    let query =
        dns::Query::new("host.example.test", "AAAA").expect("a plain name is a legal query");
    let _ = dns::check(bytes, &query);
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read the seeds")]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    /// Changes of each seed that are tried; a few thousand take less than a second.
    const SHAKES: usize = 2000;

    /// The same where each is judged by all rules, which takes some milliseconds.
    const JUDGED: usize = 40;

    /// Runs a target on every file of some folders and on changed copies of them.
    fn shake(target: fn(&[u8]), folders: &[&str]) {
        shake_often(target, folders, SHAKES);
    }

    fn shake_often(target: fn(&[u8]), folders: &[&str], shakes: usize) {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut seeds = vec![Vec::new()];
        for folder in folders {
            let entries =
                fs::read_dir(top.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
            let files = entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_file());
            seeds.extend(files.map(|path| fs::read(path).unwrap()));
        }
        assert!(seeds.len() > 1, "no seeds in {folders:?}");
        let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
        for seed in &seeds {
            target(seed);
            for _ in 0..shakes {
                let mut bytes = seed.clone();
                for _ in 0..=random.below(4) {
                    change(&mut bytes, &mut random);
                }
                target(&bytes);
            }
        }
    }

    fn change(bytes: &mut Vec<u8>, random: &mut Xorshift) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.byte()),
            2 if at < bytes.len() => bytes[at] = random.byte(),
            3 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {
                let end = (at + random.below(32)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
        }
    }

    /// Marsaglia, "Xorshift RNGs" (2003); the same sequence in every run.
    struct Xorshift(u64);

    impl Xorshift {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, limit: usize) -> usize {
            usize::try_from(self.next() % limit as u64).expect("below a usize")
        }

        fn byte(&mut self) -> u8 {
            self.next().to_le_bytes()[3]
        }
    }

    #[test]
    fn the_seeds_of_the_journal_are_of_this_version() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let bytes = fs::read(top.join("seeds/journal/killed-half-way.jsonl")).unwrap();
        let found = super::journal::read(&bytes);
        assert_eq!(
            (found.whole, found.pending.len()),
            (bytes.len(), 2),
            "{:?}",
            found.damage
        );
        assert_eq!(super::with_checksums(&bytes), bytes);
    }

    #[test]
    fn journals_near_the_seeds_are_read_without_a_panic() {
        shake(super::journal, &["seeds/journal"]);
    }

    #[test]
    fn scenarios_near_the_seeds_are_read_without_a_panic() {
        shake(super::scenario, &["seeds/scenario", "../labs/udp-echo"]);
    }

    #[test]
    fn documents_near_the_seeds_are_refused_or_done_and_undone() {
        shake(super::stored, &["seeds/stored"]);
    }

    #[test]
    fn query_files_near_the_seeds_are_read_without_a_panic() {
        shake(super::dns_query_file, &["seeds/dns_query_file"]);
    }

    #[test]
    fn replies_near_the_seeds_are_checked_without_a_panic() {
        shake(super::dns_reply, &["seeds/dns_reply"]);
    }

    #[test]
    fn responses_near_the_seeds_read_the_same_in_any_pieces() {
        shake(super::http_response, &["seeds/http_response"]);
    }

    #[test]
    fn frames_near_the_seeds_read_the_same_in_any_pieces() {
        shake(super::http2, &["seeds/http2"]);
    }

    #[test]
    fn replies_on_streams_near_the_seeds_read_the_same_in_any_pieces() {
        shake(super::stream_replies, &["seeds/stream_replies"]);
    }

    #[test]
    fn lists_near_the_seeds_are_read_without_a_panic() {
        shake(super::http_lists, &["seeds/http_lists"]);
    }

    #[test]
    fn plans_near_the_seeds_are_read_without_a_panic() {
        shake(super::http_plan, &["seeds/http_plan"]);
    }

    #[test]
    fn requests_near_the_seeds_read_the_same_in_any_pieces() {
        shake(super::http_request, &["seeds/http_request"]);
    }

    #[test]
    fn texts_near_those_of_the_kernel_are_read_without_a_panic() {
        shake(super::kernel_texts, &["seeds/kernel_texts"]);
    }

    #[test]
    fn captures_near_the_seeds_are_judged_without_a_panic() {
        shake_often(super::bundle, &["seeds/bundle"], 10 * JUDGED);
    }

    #[test]
    fn casebooks_and_what_is_near_them_are_judged_without_a_panic() {
        shake_often(super::casebook, &["../crates/rules/cases"], JUDGED);
    }

    /// CPU time of this thread: other threads and programs do not count.
    fn cpu_time() -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(now).expect("a clock of CPU time is never negative")
    }

    /// Reads it as [`super::gc_log`] does, and once more within a second of CPU time for each MB.
    fn gc_log_in_time(bytes: &[u8]) {
        const PER_MB: Duration = Duration::from_secs(1);
        super::gc_log(bytes);
        let began = cpu_time();
        super::gc_log_once(bytes);
        let took = cpu_time().saturating_sub(began);
        let limit = PER_MB.mul_f64(bytes.len().max(1_000_000) as f64 / 1e6);
        let begins = String::from_utf8_lossy(&bytes[..60.min(bytes.len())]);
        assert!(
            took < limit,
            "{} bytes of {begins:?}: {took:?}",
            bytes.len()
        );
    }

    #[test]
    fn gc_logs_and_what_is_near_them_are_read_in_time_and_without_a_panic() {
        shake_often(gc_log_in_time, &["../crates/gclog/corpus"], 8);
    }

    #[test]
    fn profiles_near_the_seeds_are_read_without_a_panic() {
        shake_often(
            super::profile,
            &["seeds/profile", "../crates/stacks/corpus"],
            SHAKES,
        );
    }

    #[test]
    fn dubbo_streams_near_the_seeds_read_the_same_in_any_pieces() {
        shake(super::dubbo, &["seeds/dubbo"]);
    }

    #[test]
    fn recordings_near_the_seed_are_read_without_a_panic() {
        shake_often(super::recording, &["seeds/recording"], 4 * SHAKES);
    }

    #[test]
    fn thread_dumps_and_what_is_near_them_are_read_without_a_panic() {
        shake_often(
            super::thread_dump,
            &["seeds/thread_dump", "../crates/threaddump/corpus"],
            JUDGED,
        );
    }

    #[test]
    fn no_megabyte_takes_long_to_read() {
        // For dumps nobody asked for a second; quadratic readers would take minutes.
        const LIMIT: Duration = Duration::from_secs(5);
        for shape in [
            "[",
            "]",
            "[0.1s]",
            "GC(1) ",
            "[GC ",
            "[Full GC [",
            "1.234: [GC 1.234: [ParNew",
            "- age   1: 1 bytes, 1 total\n",
            "[1s][info][gc] GC(1) Pause Young (Normal) (G1 Evacuation Pause)\n",
            "{Heap before GC invocations=1 (full 0):\n",
            ", 0.1 secs]",
            "1.0: Operation  [ 1 1 1 ] [ 0 0 0 0 0 ]  0\n",
            "Phase: Mark  1.0 / 2.0  1.0 / 2.0 ms\n",
            "OpenJDK 64-Bit Server VM (25.0) for linux-amd64 JRE (1.8.0), built on\n",
            "\0",
            "(",
        ] {
            gc_log_in_time(shape.repeat(1_000_000 / shape.len()).as_bytes());
        }
        let threads = |thread: &dyn Fn(usize) -> String| (0..5000).map(thread).collect::<String>();
        for dump in [
            "\"a\" #1 tid=0x1\n".repeat(50_000),
            "Found one Java-level deadlock:\n\"a\":\n".repeat(25_000),
            "Full thread dump x (1.8):\n".repeat(40_000),
            "\"tid\"".repeat(200_000),
            // One lock of all, a lock of each, a chain of all, and circles of two.
            threads(&|at| thread(at, 0, at + 1)),
            threads(&|at| thread(at, at, at)),
            threads(&|at| thread(at, at + 1, at)),
            threads(&|at| thread(at, at ^ 1, at)),
        ] {
            let began = cpu_time();
            super::thread_dump(dump.as_bytes());
            let took = cpu_time().saturating_sub(began);
            assert!(took < LIMIT, "{:?}: {took:?}", &dump[..60.min(dump.len())]);
        }
    }

    /// A thread that waits for one monitor and holds another.
    fn thread(number: usize, wanted: usize, held: usize) -> String {
        format!(
            "\"t-{number}\" #{number} tid=0x{number:x}\n   java.lang.Thread.State: BLOCKED (on object monitor)\n\tat A.b(A.java)\n\
             \t- waiting to lock <0x{wanted:x}> (a X)\n\t- locked <0x{held:x}> (a X)\n"
        )
    }

    #[test]
    fn the_seeds_of_bundles_are_of_this_version() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/bundle");
        for name in ["two-looks.json", "one-empty-look.json", "packed.rungwise"] {
            let read = rungwise_probes::bundle::read(&top.join(name));
            assert!(read.is_ok(), "{name}: {read:?}");
        }
    }

    #[test]
    fn every_format_has_its_parser_in_the_list() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = fs::read_dir(top.join("../crates/formats/src")).unwrap();
        let mut modules: Vec<String> = files
            .filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.strip_suffix(".rs").map(str::to_owned)
            })
            // The crate itself, and what only others read through.
            .filter(|name| !matches!(name.as_str(), "lib" | "columns"))
            .collect();
        modules.sort();
        let listed: Vec<&str> = super::kernel_texts::PARSERS
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(listed, modules);
    }
}
