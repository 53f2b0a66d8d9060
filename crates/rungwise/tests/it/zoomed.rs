//! The page of a GC log in a real browser: it fits every window, and its pictures show more when asked to.

use std::path::PathBuf;

use crate::drawn::{PROBE, seen};
use crate::gc::log;
use crate::run::Bench;

/// Looks at the page as it came, then drags over the second picture, then asks for all again.
const HANDS: &str = r"<script>
  const first = document.querySelectorAll('svg.time')[1] ?? document.querySelector('svg.time');
  const told = document.querySelector('.range output');
  const boxes = () => [...document.querySelectorAll('svg.time')].map(
    time => time.querySelector('.zoom').getAttribute('viewBox').split(' ').map(Number));
  const look = () => ({
    told: told.textContent, address: location.hash, boxes: boxes(),
    zoomed: document.documentElement.classList.contains('zoomed'),
    ticks: first.querySelectorAll('.ticks text').length,
  });
  const seen = JSON.parse(document.body.getAttribute('data-seen'));
  seen.heights = [...document.querySelectorAll('figure svg:not(.zoom)')].map(svg => svg.getBoundingClientRect())
    .filter(box => box.width < 1 || box.height < 1).length;
  seen.came = look();
  const box = first.getBoundingClientRect();
  const event = (type, share) => new PointerEvent(type,
    { bubbles: true, cancelable: true, button: 0, clientX: box.left + box.width * share, clientY: box.top + 20 });
  first.dispatchEvent(event('pointerdown', 0.25));
  first.dispatchEvent(event('pointermove', 0.5));
  seen.shaded = document.querySelectorAll('.pick').length;
  first.dispatchEvent(event('pointerup', 0.5));
  seen.dragged = look();
  document.querySelector('.range').dispatchEvent(new KeyboardEvent('keydown', { key: '+', bubbles: true }));
  seen.closer = look();
  dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
  seen.all = look();
  seen.left = document.querySelectorAll('.pick').length;
  document.body.setAttribute('data-seen', JSON.stringify(seen));
</script>";

/// Writes the page of a log with our scripts at its end.
fn page(bench: &Bench, name: &str) -> PathBuf {
    let ended = bench.run(&[
        "jvm",
        "gc",
        &log(name),
        "--fail-on",
        "never",
        "--format",
        "html",
    ]);
    assert!(
        ended.stdout.starts_with("<!DOCTYPE html>"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stdout.len() < 3_000_000,
        "{name}: {} bytes",
        ended.stdout.len()
    );
    let scripts = format!("{PROBE}{HANDS}</body>");
    bench.write("probed.html", &ended.stdout.replace("</body>", &scripts))
}

/// Width of the view box of each picture, of the 100 000 that are all of the time.
fn widths(look: &serde_json::Value) -> Vec<f64> {
    let boxes = look["boxes"].as_array().unwrap();
    boxes
        .iter()
        .map(|sides| sides[2].as_f64().unwrap())
        .collect()
}

#[test]
fn pictures_of_every_collector_fit_and_show_more_when_asked() {
    let bench = Bench::new();
    for name in [
        "seed-cms-remark-before.log",
        "gctoolkit_unified_g1gc_jdk11_details.log.zip",
        "own_jdk25-genzgc.log.gz",
        "ks_shenandoah.log.gz",
        "own_jdk17-parallel.log",
    ] {
        let page = page(&bench, name);
        for width in [1600, 500] {
            let seen = seen(&bench, &page, width);
            assert_eq!(seen["wide"], 0, "{name}, {width} px: {seen}");
            assert_eq!(seen["scroll"], false, "{name}, {width} px: {seen}");
            assert_eq!(seen["heights"], 0, "{name}: a picture without a size");
            let whole = widths(&seen["came"]);
            assert!(whole.len() >= 4, "{name}: {seen}");
            assert!(whole.iter().all(|width| *width > 99_999.0), "{seen}");
            assert_eq!(seen["shaded"], 1);
            let dragged = widths(&seen["dragged"]);
            assert!(
                dragged
                    .iter()
                    .all(|width| (*width - 25_000.0).abs() < 500.0),
                "{name}, {width} px: {dragged:?}"
            );
            let closer = widths(&seen["closer"]);
            assert!(closer.iter().all(|width| (*width - 12_500.0).abs() < 500.0));
            let told = seen["dragged"]["told"].as_str().unwrap();
            assert!(told.contains(" to ") && told.contains(" of "), "{told}");
            assert!(seen["dragged"]["ticks"].as_u64().unwrap() >= 1, "{seen}");
            assert!(
                seen["dragged"]["address"]
                    .as_str()
                    .unwrap()
                    .starts_with("#from=")
            );
            assert_eq!(seen["all"], seen["came"]);
            assert_eq!(seen["left"], 0);
        }
    }
}

#[test]
fn an_address_names_a_range_of_time() {
    let bench = Bench::new();
    let page = page(&bench, "own_jdk17-parallel.log");
    let address = |range: &str| PathBuf::from(format!("{}{range}", page.display()));
    let came = |range: &str| seen(&bench, &address(range), 1200)["came"].clone();
    let all = came("");
    assert_eq!(all["zoomed"], false);
    // A link to a section is no range, nor is a range that ends before it begins.
    for none in ["#pauses", "#from=9&to=1", "#from=a&to=b"] {
        assert_eq!(widths(&came(none)), widths(&all), "{none}");
    }
    let range = came("#from=1&to=2.5");
    assert_eq!(range["zoomed"], true, "{range}");
    assert!(
        range["told"].as_str().unwrap().contains("0:00:01.0"),
        "{range}"
    );
    assert!(
        widths(&range).iter().all(|width| *width < 99_000.0),
        "{range}"
    );
}
