//! A bundle from a stranger is data: whatever is in it, `check` ends with a sentence and status 2 or judges it, and
//! nothing is written, opened or run because of it.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{below, formats};
use crate::run::{Bench, Ended, binary};

/// The most that a hostile bundle may make the tool take, in KiB: what is unpacked, and the tree made of it.
const MEMORY_KIB: u64 = 3 << 20;

fn machine() -> Value {
    json!({
        "hostname": "h", "kernel": "6.1.0", "cpu_model": "c", "cpus": 2, "memory_bytes": 1,
        "virtualisation": null, "boot_id": "b"
    })
}

/// A small capture that is judged, for the changes below.
fn small() -> Value {
    json!({
        "rungwise_capture": 1,
        "version": "0.1.0",
        "capture": {
            "machine": machine(),
            "moments": [
                {"at_s": 0.0, "files": {"/proc/loadavg": "0 0 0 1/2 3\n"}, "answers": {}},
                {"at_s": 9.0, "files": {"/proc/loadavg": "0 0 0 1/2 3\n"}, "answers": {}},
            ],
        },
    })
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

/// Checks a file with a bound on memory and time, and proves that it wrote nothing.
#[track_caller]
fn checked(bench: &Bench, file: &Path, arguments: &[&str]) -> Ended {
    let before = below(bench.dir.path());
    let output = Command::new("timeout")
        .args(["--signal=KILL", "120", "prlimit"])
        .arg(format!("--as={}", MEMORY_KIB << 10))
        .arg(binary())
        .arg("check")
        .arg(file)
        .args(["--fail-on", "never"])
        .args(arguments)
        .current_dir(bench.dir.path())
        .env("RUNGWISE_STATE", bench.state())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let ended = Ended::from(output);
    assert!(ended.code.is_some(), "{} took too long", file.display());
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(below(bench.dir.path()), before, "files appeared");
    ended
}

#[track_caller]
fn refused(bench: &Bench, name: &str, bytes: &[u8], words: &[&str]) {
    let file = bench.path(name);
    std::fs::write(&file, bytes).unwrap();
    let ended = checked(bench, &file, &[]);
    assert_eq!(
        ended.code,
        Some(2),
        "{name}: {}{}",
        ended.stdout,
        ended.stderr
    );
    assert!(ended.stdout.is_empty(), "{name}: {}", ended.stdout);
    let lines = ended.stderr.lines().count();
    assert!(lines == 1, "{name}: {lines} lines: {}", ended.stderr);
    ended.says(&["cannot judge", name]).says(words);
    std::fs::remove_file(file).unwrap();
}

/// The small capture with another value at a place in it.
fn with(place: &str, value: Value) -> Vec<u8> {
    let mut document = small();
    *document.pointer_mut(place).unwrap() = value;
    document.to_string().into_bytes()
}

#[test]
fn what_is_broken_cut_or_of_another_type_is_refused_in_one_line() {
    let bench = Bench::new();
    let whole = small().to_string();
    let gzip = packed(whole.as_bytes());
    let file = bench.path("good.rungwise");
    std::fs::write(&file, &gzip).unwrap();
    assert!(matches!(checked(&bench, &file, &[]).code, Some(0 | 3)));

    refused(&bench, "empty", b"", &["it is empty"]);
    refused(&bench, "words", b"hello", &["begins with 'hello'"]);
    refused(
        &bench,
        "elf",
        &std::fs::read("/proc/self/exe").unwrap()[..4096],
        &["it is not a capture, a GC log or a thread dump"],
    );
    refused(&bench, "half.gz", &gzip[..gzip.len() / 2], &["cut short"]);
    refused(
        &bench,
        "half.json",
        &whole.as_bytes()[..whole.len() / 2],
        &["not a JSON"],
    );
    let mut flipped = gzip.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    refused(&bench, "flipped.gz", &flipped, &[]);
    refused(
        &bench,
        "later",
        b"{\"rungwise_capture\":99}",
        &["newer rungwise"],
    );
    refused(&bench, "huge", b"{\"rungwise_capture\":1e400}", &[]);
    refused(&bench, "negative", b"{\"rungwise_capture\":-1}", &[]);
    refused(
        &bench,
        "twice",
        b"{\"rungwise_capture\":1,\"rungwise_capture\":1}",
        &["duplicate"],
    );
    refused(
        &bench,
        "not utf-8",
        b"{\"rungwise_capture\":1,\"version\":\"\xff\xfe\"}",
        &[],
    );

    for (name, place, value) in [
        ("list for object", "/capture", json!([])),
        ("null for object", "/capture/machine", json!(null)),
        ("text for number", "/capture/machine/cpus", json!("two")),
        ("too many CPUs", "/capture/machine/cpus", json!(1u64 << 40)),
        ("negative count", "/capture/machine/cpus", json!(-1)),
        ("no looks", "/capture/moments", json!([])),
        ("looks of text", "/capture/moments", json!("none")),
        (
            "number for file",
            "/capture/moments/0/files",
            json!({"/proc/stat": 7}),
        ),
        (
            "list for file",
            "/capture/moments/0/files",
            json!({"/proc/stat": ["x"]}),
        ),
        (
            "wrong answer",
            "/capture/moments/0/answers",
            json!({"tcp": {"answer": {"nonsense": 1}}}),
        ),
        (
            "wrong socket",
            "/capture/moments/0/answers",
            json!({"tcp": {"answer": {"tcp": [{"local": "x"}]}}}),
        ),
        ("time of text", "/capture/moments/1/at_s", json!("9")),
        ("time goes back", "/capture/moments/1/at_s", json!(-9.0)),
        ("time stands", "/capture/moments/1/at_s", json!(0.0)),
        (
            "time before the start",
            "/capture/moments/0/at_s",
            json!(-3.0),
        ),
        ("time without end", "/capture/moments/1/at_s", json!(1e30)),
    ] {
        refused(&bench, name, &with(place, value), &[]);
    }
    let huge = whole.replace("9.0", "1e400");
    refused(&bench, "1e400", huge.as_bytes(), &[]);
    let twice = whole.replacen("\"version\":", "\"capture\":null,\"version\":", 1);
    refused(&bench, "two captures", twice.as_bytes(), &[]);
}

#[test]
fn what_unpacks_without_end_or_nests_without_end_is_refused_within_its_memory() {
    let bench = Bench::new();
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    let blank = vec![b' '; 1 << 20];
    for _ in 0..1100 {
        bomb.write_all(&blank).unwrap();
    }
    refused(
        &bench,
        "bomb",
        &bomb.finish().unwrap(),
        &["unpacks to more than"],
    );

    let mut claims = packed(small().to_string().as_bytes());
    let end = claims.len() - 4;
    // The size at the end of gzip is 32 bits: a claim of 4 GiB less one. It is checked against, not believed.
    claims[end..].copy_from_slice(&[0xff; 4]);
    refused(&bench, "claims 4 GiB", &claims, &["cut short"]);

    // Deep where it is read, and deep where it is skipped.
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    refused(&bench, "deep", deep.as_bytes(), &[]);
    let known = small()
        .to_string()
        .replace("\"answers\":{}", &format!("\"answers\":{{\"tcp\":{deep}}}"));
    refused(&bench, "deep answers", known.as_bytes(), &[]);

    // Each file of seven bytes becomes a node of a tree.
    let mut files = String::with_capacity(64 << 20);
    for number in 0..3_000_000_u32 {
        use std::fmt::Write as _;
        write!(files, "\"{number:x}\":\"\",").unwrap();
    }
    let many = small()
        .to_string()
        .replacen("\"files\":{", &format!("\"files\":{{{files}"), 1);
    let file = bench.path("many files");
    std::fs::write(&file, packed(many.as_bytes())).unwrap();
    assert!(matches!(
        checked(&bench, &file, &["-q", "-o", "/dev/null"]).code,
        Some(0 | 2 | 3)
    ));
}

#[test]
fn what_is_no_plain_file_neither_blocks_nor_fills_the_memory() {
    let bench = Bench::new();
    let ended = checked(&bench, Path::new("/dev/zero"), &[]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let pipe = bench.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    // Nobody writes to it, so whoever opens it waits for ever.
    checked(&bench, &pipe, &[])
        .expect(2)
        .says(&["neither a file nor a folder"]);
    let folder = bench.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let about = json!({"machine": machine()}).to_string();
    bench.write("folder/capture.json", &about);
    bench.write("folder/a.txt", "@ 0 /proc/loadavg\n0 0 0 1/2 3\n");
    let plain = checked(&bench, &folder, &[]);
    assert!(matches!(plain.code, Some(0 | 3)), "{}", plain.stderr);
    // A folder's texts are its own: no link leads out of it, no pipe is waited for.
    for target in ["/dev/zero", "/etc/passwd", pipe.to_str().unwrap()] {
        let link = folder.join("b.txt");
        symlink(target, &link).unwrap();
        let ended = checked(&bench, &folder, &[]);
        assert_eq!(ended.code, Some(2), "{target}: {}", ended.stderr);
        ended.says(&["b.txt"]);
        std::fs::remove_file(link).unwrap();
    }
}

/// What a terminal or a browser would take for an order.
const ORDERS: &str =
    "\u{1b}]0;planted\u{7}\u{1b}[2J<script>planted()</script>\" onload=\"planted()\u{9b}31m\r\u{8}";

#[test]
fn names_that_lead_outside_or_give_orders_are_names() {
    let bench = Bench::new();
    let canary = bench.write("canary", "CANARY\n");
    let mut document = small();
    let traversal = format!("/../../../../../..{}", canary.display());
    for moment in 0..2 {
        let files = document
            .pointer_mut(&format!("/capture/moments/{moment}/files"))
            .unwrap();
        for path in [
            traversal.as_str(),
            canary.to_str().unwrap(),
            "../../written",
            "",
            "/",
            "//",
            "\u{0}",
            "/proc/\u{0}/stat",
            "/sys/class/net/../../../etc/passwd",
            "/proc/*/stat",
            "/sys/class/net/*/statistics/rx_dropped",
        ] {
            files[path] = json!("7\n");
        }
        for device in ["..", ORDERS, &"x".repeat(5000)] {
            for (name, text) in [
                ("queues/rx-0/rps_cpus", "0"),
                ("mtu", ORDERS),
                ("statistics/rx_missed_errors", "99999"),
            ] {
                files[format!("/sys/class/net/{device}/{name}")] = json!(text);
            }
        }
        files["/proc/cmdline"] = json!(ORDERS);
        files["/proc/net/dev"] = json!(format!("Inter|\n face |\n {ORDERS}: 1 2 3 4 5 6 7 8 9\n"));
        files["/proc/1/stat"] = json!(format!("1 ({ORDERS}) R 0 0 0"));
        files["/proc/stat"] = json!({"failed": ORDERS});
    }
    document["capture"]["machine"]["hostname"] = json!(ORDERS);
    document["capture"]["process"] = json!({"pid": 7, "name": ORDERS});
    document["capture"]["taken"] = json!(ORDERS);
    let file = bench.path("orders.rungwise");
    std::fs::write(&file, packed(document.to_string().as_bytes())).unwrap();
    for format in formats(&bench) {
        let ended = checked(&bench, &file, &["--format", &format, "--color", "never"]);
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
        assert!(!ended.stdout.contains("CANARY"), "{format}");
        for sign in ['\u{1b}', '\u{7}', '\u{9b}', '\u{8}', '\r'] {
            assert!(!ended.stdout.contains(sign), "{format} has {sign:?}");
        }
        assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
        if format == "html" || format == "markdown" {
            let markup = outside_fences(&ended.stdout);
            assert!(!markup.contains("<script>planted"), "{format}");
            // In an attribute; in Markdown no text becomes one.
            let leaves = format == "html" && markup.contains("\" onload=\"planted");
            assert!(!leaves, "{format}");
        }
    }
}

#[test]
fn a_capture_is_reported_with_the_time_it_was_taken_and_not_with_todays() {
    let bench = Bench::new();
    let file = bench.path("dated.rungwise");
    let mut document = small();
    for (taken, shown) in [
        (json!("2001-02-03T04:05:06Z"), "2001-02-03 04:05:06 UTC"),
        (Value::Null, "time not recorded"),
    ] {
        document["capture"]["taken"] = taken;
        std::fs::write(&file, document.to_string()).unwrap();
        let ended = checked(&bench, &file, &["--color", "never"]);
        assert!(ended.stdout.contains(shown), "{}", ended.stdout);
    }
}

/// The text without blocks of code in Markdown, where markup is text.
fn outside_fences(text: &str) -> String {
    let (mut markup, mut fence) = (String::new(), None);
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(opened) if ticks >= opened => fence = None,
            None => markup.push_str(line),
            Some(_) => {}
        }
    }
    markup
}

#[test]
fn a_refusal_gives_a_terminal_no_orders_either() {
    let bench = Bench::new();
    let mut document = small();
    document["capture"]["moments"][0]["answers"] = json!({"x": {ORDERS: 1}});
    refused(&bench, "orders", document.to_string().as_bytes(), &[]);
    let file = bench.path("orders");
    std::fs::write(&file, document.to_string()).unwrap();
    let ended = checked(&bench, &file, &[]);
    assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
    let named = bench.path("\u{1b}[2Jx");
    let ended = checked(&bench, &named, &[]);
    assert_eq!(ended.code, Some(2));
    assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
}

#[test]
fn numbers_beyond_reason_are_judged_without_a_panic() {
    let bench = Bench::new();
    let most = u64::MAX;
    for text in [
        format!("{most} {most} {most} {most} {most} {most} {most} {most} {most} {most}\n"),
        "0-4294967295\n".to_owned(),
        "0-8191,".repeat(20_000),
        "-9223372036854775808\n".repeat(9),
        "1e400 nan inf -inf\n".to_owned(),
        "ffffffff,".repeat(300),
    ] {
        let mut document = small();
        for moment in 0..2 {
            let files = document
                .pointer_mut(&format!("/capture/moments/{moment}/files"))
                .unwrap();
            for path in [
                "/proc/loadavg",
                "/proc/softirqs",
                "/proc/interrupts",
                "/proc/net/softnet_stat",
                "/proc/net/snmp",
                "/proc/vmstat",
                "/proc/pressure/cpu",
                "/sys/devices/system/cpu/online",
                "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
                "/sys/devices/system/node/online",
                "/sys/devices/system/node/node0/cpulist",
                "/sys/class/net/eth0/queues/rx-0/rps_cpus",
                "/proc/irq/7/smp_affinity_list",
                "/proc/sys/net/core/netdev_budget",
                "/proc/sys/net/core/somaxconn",
            ] {
                files[path] = json!(text);
            }
            let cpus = format!("cpu  {text}cpu0 {text}cpu4294967295 {text}intr {text}");
            files["/proc/stat"] = json!(cpus);
            files["/proc/diskstats"] = json!(format!("   8 0 sda {text}"));
        }
        let file = bench.path("numbers.rungwise");
        std::fs::write(&file, document.to_string()).unwrap();
        let ended = checked(&bench, &file, &["--quiet"]);
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    }
}
