//! The report in a real browser: nothing sticks out, whatever the window, and it can be read in the dark and on paper.

use std::path::Path;
use std::process::Command;

use crate::browser::{ALONE, Browser};
use crate::run::Bench;
use crate::tune::SMALL;
use crate::zoomed::PALE;

/// The page with a script of ours at its end that writes what it sees into the title.
pub(crate) const PROBE: &str = r"<script>
  const page = document.documentElement;
  const wide = [...document.querySelectorAll('body *')].filter(e => {
    const box = e.getBoundingClientRect();
    let scrolls = false;
    for (let p = e.parentElement; p; p = p.parentElement)
      scrolls ||= ['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(p).overflowX);
    return box.width > 0 && box.right > page.clientWidth + 1 && !scrolls;
  });
  document.body.setAttribute('data-seen', JSON.stringify({
    wide: wide.length,
    scroll: page.scrollWidth > page.clientWidth,
    charts: document.querySelectorAll('svg').length,
    tables: document.querySelectorAll('table').length,
  }));
</script>";

/// What the browser reported of the page, opened for the purpose.
fn opened(bench: &Bench, page: &Path, purpose: &[&str]) -> std::process::Output {
    let profile = format!("--user-data-dir={}", bench.path("profile").display());
    Command::new("chromium")
        .args(ALONE)
        .args(purpose)
        .arg(profile)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts; install the package chromium")
}

pub(crate) fn seen(bench: &Bench, page: &Path, width: u32) -> serde_json::Value {
    let size = format!("--window-size={width},1200");
    let output = opened(bench, page, &["--dump-dom", &size]);
    let dom = String::from_utf8_lossy(&output.stdout);
    let seen = dom
        .split_once("data-seen=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .unwrap_or_else(|| {
            panic!(
                "chromium drew nothing: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
        .0
        .replace("&quot;", "\"");
    serde_json::from_str(&seen).unwrap()
}

#[test]
fn the_report_fits_every_window_and_can_be_read_in_daylight_in_the_dark_and_on_paper() {
    let bench = Bench::new();
    let scenario = bench.write("small.toml", SMALL);
    let ended = bench.run(&["tune", scenario.to_str().unwrap(), "--format", "html"]);
    assert!(
        ended.stdout.starts_with("<!DOCTYPE html>"),
        "{}",
        ended.stderr
    );
    let page = bench.write(
        "probed.html",
        &ended.stdout.replace("</body>", &format!("{PROBE}</body>")),
    );
    for width in [1600, 500] {
        let seen = seen(&bench, &page, width);
        assert_eq!(seen["wide"], 0, "{width} px: {seen}");
        assert_eq!(seen["scroll"], false, "{width} px: {seen}");
        assert!(
            seen["charts"].as_u64().unwrap() > 0 && seen["tables"].as_u64().unwrap() > 0,
            "{seen}"
        );
    } // As wide as a sheet of A4 within its margins, and as high as the page: what is out of sight cannot be looked at.
    let mut browser = Browser::start(&bench, [700, 16_000]);
    for (medium, scheme, dark) in [
        ("screen", "light", false),
        ("screen", "dark", true),
        ("print", "light", false),
        ("print", "dark", false),
    ] {
        let what = format!("{medium}, {scheme}");
        browser.shows(medium, scheme);
        browser.open(&page);
        let fits = browser.value("JSON.parse(document.body.getAttribute('data-seen'))");
        assert_eq!(
            (&fits["wide"], &fits["scroll"]),
            (&0.into(), &false.into()),
            "{what}: {fits}"
        );
        let seen = browser.value(PALE);
        let ground = seen["ground"].as_f64().unwrap();
        assert!(
            if dark { ground < 0.05 } else { ground > 0.8 },
            "{what}: {ground}"
        );
        assert!(seen["texts"].as_u64().unwrap() > 100, "{what}: {seen}");
        assert_eq!(seen["pale"], serde_json::json!([]), "{what}");
        if medium == "print" {
            assert_eq!(browser.value(CUT), serde_json::json!([]), "{what}");
        }
    }
    drop(browser);
    let pages = printed(&bench, &page);
    assert!((2..=12).contains(&pages), "{pages} pages");
}

/// What is cut on paper, where nobody scrolls: boxes that hold more than they show.
const CUT: &str = "[...document.querySelectorAll('body *')].filter(e =>
    ['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(e).overflowX)
      && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1
  ).map(e => e.outerHTML.slice(0, 200))";

/// Prints the page, and answers on how many sheets; each is A4 or Letter, upright and not empty.
fn printed(bench: &Bench, page: &Path) -> usize {
    let pdf = bench.path("report.pdf");
    let output = opened(bench, page, &[&format!("--print-to-pdf={}", pdf.display())]);
    let written = std::fs::read(&pdf)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = String::from_utf8_lossy(&written);
    // The objects of pages are not compressed: Skia writes them as text.
    let sheets: Vec<&str> = text.split("/Type /Page\n").skip(1).collect();
    for sheet in &sheets {
        let (_, rest) = sheet.split_once("/MediaBox [0 0 ").unwrap();
        let (size, _) = rest.split_once(']').unwrap();
        let (width, height) = size.split_once(' ').unwrap();
        let points = |text: &str| text.parse::<f64>().unwrap();
        assert!(
            points(width) < points(height) && points(width) > 590.0,
            "{size}"
        );
    }
    sheets.len()
}
