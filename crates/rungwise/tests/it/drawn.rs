//! The report in a real browser: nothing sticks out, whatever the window.

use std::path::Path;
use std::process::Command;

use crate::browser::ALONE;
use crate::run::Bench;
use crate::tune::SMALL;

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

pub(crate) fn seen(bench: &Bench, page: &Path, width: u32) -> serde_json::Value {
    let output = Command::new("chromium")
        .args(ALONE)
        .arg("--dump-dom")
        .arg(format!("--window-size={width},1200"))
        .arg(format!(
            "--user-data-dir={}",
            bench.path("profile").display()
        ))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts; install the package chromium");
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
fn the_report_fits_a_wide_and_a_narrow_window() {
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
    }
}
