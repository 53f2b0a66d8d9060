//! `profile` and `compare` on recorded profiles: text, documents, exports, what is none; and the flame graph in a real browser.

use rungwise_model::compare::CompareReport;
use rungwise_model::profile::{Event, ProfileReport, Unit};
use rungwise_testkit::InventedRecording;
use serde_json::Value;

use crate::browser::Browser;
use crate::drawn::{PROBE, seen};
use crate::run::Bench;
use crate::tune::assert_valid;
use crate::zoomed::PALE;

const FOLDED: &str = "\
[http-1 tid=11];java.lang.Thread.run;shop.Cart.add;shop.Log.write;write_[k] 40
[http-2 tid=12];java.lang.Thread.run;shop.Cart.add;shop.Log.write;write_[k] 20
[http-1 tid=11];java.lang.Thread.run;shop.Cart.add;shop.Json.parse 25
[gc tid=7];collect;mark 15
";

/// Stacks whose names would be code if a page took them for it.
const MALICIOUS: &str =
    "main;</script><script>window.hacked=1</script>;<img src=x onerror=window.hacked=2> 5\n";

fn document(bench: &Bench, words: &[&str]) -> ProfileReport {
    let ended = bench
        .run(&[words, &["--format", "json"]].concat())
        .expect(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "profile");
    serde_json::from_value(document).unwrap()
}

#[test]
fn folded_stacks_give_hot_frames_paths_and_threads() {
    let bench = Bench::new();
    bench.write("x.folded", FOLDED);
    let ended = bench.run(&["profile", "x.folded"]).expect(0);
    let text = ended.stdout.replace('\u{202f}', " ");
    for said in [
        "write itself has 60 % of the counts",
        " 60.0 %   60.0 %    write  (below 1 more)",
        " 85 %        2  http-*  write",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let report = document(&bench, &["profile", "x.folded"]);
    let profile = &report.profile;
    assert_eq!(
        (profile.event, profile.unit, profile.total),
        (Event::Unknown, Unit::Count, 100)
    );
    assert_eq!(profile.hot[0].frame, "write");
    assert_eq!((profile.threads.len(), profile.stacks.distinct), (2, 4));
}

#[test]
fn a_recording_gives_the_stacks_of_each_event() {
    let bench = Bench::new();
    let recording = InventedRecording {
        chunks: 2,
        samples: 2000,
        waits: 200,
        is_finished: true,
    };
    std::fs::write(bench.path("rec"), recording.bytes()).unwrap();
    let cpu = document(&bench, &["profile", "rec"]).profile;
    assert_eq!(
        (cpu.event, cpu.unit, cpu.total),
        (Event::Cpu, Unit::Samples, 4000)
    );
    assert_eq!(
        (cpu.hot[0].frame.as_str(), cpu.hot[0].own),
        ("shop.Cart.add", 3600)
    );
    assert!(cpu.shares[0].low.unwrap() < 1.0 && cpu.shares[0].high.unwrap() > 0.99);
    let lock = document(&bench, &["profile", "rec", "--event", "lock"]).profile;
    assert_eq!(
        (lock.unit, lock.total, lock.samples),
        (Unit::Ns, 8_000_000_000, Some(400))
    );
    assert_eq!(lock.hot[0].frame, "shop.Ledger");
    let none = bench.run(&["profile", "rec", "--event", "alloc"]).expect(4);
    none.says(&["no such events", "--event cpu", "--event lock"]);
}

#[test]
fn exports_and_documents_read_back_as_the_same_profile() {
    let bench = Bench::new();
    bench.write("x", FOLDED);
    let ended = bench.run(&["profile", "x", "--folded"]).expect(0);
    let mut lines: Vec<&str> = FOLDED.lines().collect();
    lines.sort_unstable();
    assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), lines);
    let speedscope = bench
        .run(&["profile", "x", "--speedscope"])
        .expect(0)
        .stdout;
    let speedscope: Value = serde_json::from_str(&speedscope).unwrap();
    assert_eq!(speedscope["profiles"].as_array().unwrap().len(), 3);
    bench.run(&["profile", "x", "-o", "x.json"]).expect(0);
    let again = bench.run(&["profile", "x.json", "--folded"]).expect(0);
    assert_eq!(again.stdout, ended.stdout);
    std::process::Command::new("gzip")
        .arg(bench.path("x"))
        .status()
        .unwrap();
    assert_eq!(
        bench.run(&["profile", "x.gz", "--folded"]).expect(0).stdout,
        ended.stdout
    );
}

#[test]
fn what_is_no_profile_ends_with_status_4_and_says_what_it_is() {
    let bench = Bench::new();
    for (name, text, said) in [
        ("empty", "", "it is empty"),
        (
            "dump",
            "Full thread dump OpenJDK\n\n\"main\" #1\n",
            "begins with 'Full thread dump OpenJDK'",
        ),
        ("old", "FLR\0\0\0\0\u{9} and so on", "version 0.9"),
    ] {
        bench.write(name, text);
        bench.run(&["profile", name]).expect(4).says(&[said]);
    }
    bench
        .run(&["profile", "missing"])
        .expect(2)
        .says(&["no such file"]);
    bench.write("x", FOLDED);
    bench
        .run(&["profile", "x", "--event", "cpu"])
        .expect(2)
        .says(&["remove --event"]);
}

#[test]
fn two_profiles_are_compared_by_shares_with_the_error_of_sampling() {
    let bench = Bench::new();
    bench.write("a", FOLDED);
    bench.write(
        "b",
        &FOLDED
            .replace("write_[k] 40", "write_[k] 4")
            .replace("write_[k] 20", "write_[k] 2"),
    );
    let ended = bench
        .run(&["compare", "a", "b", "--format", "json"])
        .expect(0);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_valid(&document, "compare");
    let report: CompareReport = serde_json::from_value(document).unwrap();
    let sentence = report.sentence.replace('\u{202f}', " ");
    assert_eq!(sentence, "write shrank from 60 % to 13 % of the counts");
    bench.run(&["compare", "a", "b"]).expect(0).says(&[
        "before    after",
        " 60.0 %   13.0 %",
        "not tested",
    ]);
    bench.run(&["profile", "a", "-o", "a.json"]).expect(0);
    bench.run(&["profile", "b", "-o", "b.json"]).expect(0);
    bench
        .run(&["compare", "a.json", "b.json"])
        .expect(0)
        .says(&["write shrank"]);
    bench
        .run(&["compare", "a", "a.json"])
        .expect(0)
        .says(&["no frame has another share"]);
    bench.write("other", "no profile");
    bench
        .run(&["compare", "a", "other"])
        .expect(2)
        .says(&["name two profiles"]);
}

/// Presses a key on the picture.
fn press(browser: &mut Browser, key: &str) {
    browser.value(&format!(
        "document.querySelector('.flame canvas').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true, cancelable: true }})), 0"
    ));
}

/// What the page says of the chosen frame.
fn about(browser: &mut Browser) -> String {
    let text = browser.value("document.querySelector('.flame .about').textContent");
    text.as_str().unwrap().to_owned()
}

/// Clicks at this share of the width, so many rows above the lowest.
fn click(browser: &mut Browser, across: f64, rows: u32) {
    browser.value(&format!(
        "(() => {{
           const canvas = document.querySelector('.flame canvas'), box = canvas.getBoundingClientRect();
           const place = {{ clientX: box.left + box.width * {across}, clientY: box.bottom - 18 * {rows} - 9, bubbles: true }};
           canvas.dispatchEvent(new MouseEvent('click', place));
         }})()"
    ));
}

fn page(bench: &Bench, words: &[&str]) -> std::path::PathBuf {
    let page = bench.path("flame.html");
    bench
        .run(&[words, &["-o", "flame.html"]].concat())
        .expect(0);
    page
}

#[test]
fn the_graph_zooms_searches_turns_and_obeys_the_keyboard() {
    let bench = Bench::new();
    bench.write("x.folded", FOLDED);
    let page = page(&bench, &["profile", "x.folded"]);
    let mut browser = Browser::start(&bench, [1200, 900]);
    browser.open(&page);
    browser.until("document.querySelector('.flame').classList.contains('drawn')");
    let colours = "(() => {
      const canvas = document.querySelector('.flame canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height), seen = new Set();
      for (let at = 0; at < data.length; at += 4) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
      return seen.size; })()";
    assert!(
        browser.value(colours).as_u64().unwrap() > 3,
        "the picture is empty"
    );
    assert!(about(&mut browser).starts_with("All: 100."));

    // The root, then its widest callees.
    press(&mut browser, "ArrowRight");
    press(&mut browser, "ArrowRight");
    assert!(
        about(&mut browser).starts_with("java.lang.Thread.run: 85"),
        "{}",
        about(&mut browser)
    );
    for _ in 0..3 {
        press(&mut browser, "ArrowUp");
    }
    assert!(
        about(&mut browser).starts_with("write: 60"),
        "{}",
        about(&mut browser)
    );
    press(&mut browser, "ArrowDown");
    press(&mut browser, "Enter");
    assert!(
        about(&mut browser).starts_with("shop.Log.write: 60"),
        "{}",
        about(&mut browser)
    );
    assert_eq!(
        browser.value("document.querySelector('.flame .tools button').disabled"),
        false
    );
    press(&mut browser, "Escape");
    assert!(about(&mut browser).starts_with("All: 100."));

    // `collect` is the first of the roots by its name, 15 % wide.
    click(&mut browser, 0.5, 0);
    assert!(
        about(&mut browser).starts_with("java.lang.Thread.run"),
        "{}",
        about(&mut browser)
    );
    press(&mut browser, "Escape");

    let search = |browser: &mut Browser, text: &str| {
        let found = browser.value(&format!(
            "(() => {{ const field = document.querySelector('.flame input'); field.value = '{text}';
               field.dispatchEvent(new Event('input')); return document.querySelector('.flame .found').textContent; }})()"
        ));
        found.as_str().unwrap().replace('\u{202f}', " ")
    };
    assert_eq!(
        search(&mut browser, "shop\\\\.(log|json)"),
        "found 85.0 % in 2 frames"
    );
    assert_eq!(
        search(&mut browser, "add|write"),
        "found 85.0 % in 3 frames"
    );
    assert_eq!(search(&mut browser, "(("), "nothing found");
    assert_eq!(search(&mut browser, ""), "");

    press(&mut browser, "i");
    assert_eq!(
        browser.value("document.querySelector('.flame [aria-pressed=true]').textContent"),
        "Icicle"
    );
    press(&mut browser, "i");
    press(&mut browser, "c");
    press(&mut browser, "ArrowRight");
    assert!(
        about(&mut browser).starts_with("write: 60"),
        "{}",
        about(&mut browser)
    );
    press(&mut browser, "ArrowUp");
    assert!(
        about(&mut browser).starts_with("shop.Log.write: 60"),
        "{}",
        about(&mut browser)
    );
    press(&mut browser, "c");

    browser.value(
        "(() => { const groups = document.querySelector('.flame select'); groups.value = '1'; groups.dispatchEvent(new Event('change')); })()",
    );
    assert!(
        about(&mut browser).starts_with("All: 15."),
        "{}",
        about(&mut browser)
    );
}

#[test]
fn the_page_of_a_profile_fits_can_be_read_and_takes_no_name_for_code() {
    let bench = Bench::new();
    bench.write("x.folded", &format!("{FOLDED}{MALICIOUS}"));
    let page = page(&bench, &["profile", "x.folded"]);
    let text = std::fs::read_to_string(&page).unwrap();
    let probed = bench.write(
        "probed.html",
        &text.replace("</body>", &format!("{PROBE}</body>")),
    );
    for width in [1600, 500] {
        let seen = seen(&bench, &probed, width);
        assert_eq!(
            (&seen["wide"], &seen["scroll"]),
            (&Value::from(0), &Value::from(false)),
            "{width} px: {seen}"
        );
    }
    let mut browser = Browser::start(&bench, [1200, 2400]);
    for [medium, scheme] in [["screen", "light"], ["screen", "dark"], ["print", "light"]] {
        browser.shows(medium, scheme);
        browser.open(&page);
        let seen = browser.value(PALE);
        assert_eq!(seen["pale"], serde_json::json!([]), "{medium} {scheme}");
    }
    let boxes = "document.querySelectorAll('.boxes div').length && getComputedStyle(document.querySelector('.boxes')).display";
    assert_eq!(browser.value(boxes), "block", "paper shows the plain boxes");
    assert_eq!(browser.value("typeof window.hacked"), "undefined");
    let name = "[...document.querySelectorAll('.boxes div')].some(box => box.textContent === '</script><script>window.hacked=1</script>')";
    assert_eq!(browser.value(name), true);
}

#[test]
fn a_hundred_thousand_stacks_fit_a_page_of_three_megabytes() {
    use std::fmt::Write as _;
    let bench = Bench::new();
    let mut text = String::new();
    let mut state = 7_u64;
    let mut random = |most: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for number in 0..100_000_u64 {
        let _ = write!(
            text,
            "[worker-{} tid={}];java.lang.Thread.run",
            number % 40,
            number % 40
        );
        for depth in 0..20 {
            let _ = write!(
                text,
                ";com.shop.service.Handler{depth}.call{}",
                random(2 + depth / 4)
            );
        }
        let _ = writeln!(
            text,
            ";com.shop.Leaf.number{} {}",
            number % 3000,
            1 + random(20)
        );
    }
    bench.write("big.folded", &text);
    let page = page(&bench, &["profile", "big.folded"]);
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert!(bytes < 3_000_000, "{bytes} bytes");
    let written = std::fs::read_to_string(&page).unwrap();
    assert!(
        written.contains("are drawn as [smaller frames]"),
        "the page does not say what it cuts"
    );
    let mut browser = Browser::start(&bench, [1200, 900]);
    browser.open(&page);
    browser.until("document.querySelector('.flame').classList.contains('drawn')");
    press(&mut browser, "c");
    press(&mut browser, "ArrowRight");
    assert!(
        !about(&mut browser).starts_with("All"),
        "{}",
        about(&mut browser)
    );
}

#[test]
fn a_difference_is_drawn_by_either_width() {
    let bench = Bench::new();
    bench.write("a", FOLDED);
    bench.write("b", &FOLDED.replace("write_[k] 40", "write_[k] 4"));
    let page = page(&bench, &["compare", "a", "b"]);
    let mut browser = Browser::start(&bench, [1200, 900]);
    browser.open(&page);
    browser.until("document.querySelector('.flame').classList.contains('drawn')");
    assert!(
        about(&mut browser).starts_with("All: 64."),
        "{}",
        about(&mut browser)
    );
    press(&mut browser, "ArrowRight");
    press(&mut browser, "ArrowRight");
    let said = about(&mut browser).replace('\u{202f}', " ");
    assert_eq!(
        said,
        "java.lang.Thread.run: before 85.0 %, after 76.6 %, −8.44 percentage points"
    );
    browser.value(
        "(() => { const sides = document.querySelector('.flame select'); sides.value = '0'; sides.dispatchEvent(new Event('change')); })()",
    );
    assert!(
        about(&mut browser).starts_with("All: 100."),
        "{}",
        about(&mut browser)
    );
}
