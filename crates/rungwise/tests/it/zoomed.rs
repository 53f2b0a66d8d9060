//! The page of a GC log in a real browser: it fits every window, and its pictures show more when asked to.

use std::path::PathBuf;

use crate::browser::Browser;
use crate::drawn::{PROBE, seen};
use crate::gc::log;
use crate::run::Bench;

/// Looks at the page as it came, then drags over the second picture, then asks for all again.
const HANDS: &str = r"<script>
  const first = document.querySelectorAll('svg.time')[1] ?? document.querySelector('svg.time');
  const label = document.querySelector('.range output');
  const boxes = () => [...document.querySelectorAll('svg.time')].map(
    time => time.querySelector('.zoom').getAttribute('viewBox').split(' ').map(Number));
  const view = () => ({
    label: label.textContent, address: location.hash, boxes: boxes(),
    zoomed: document.documentElement.classList.contains('zoomed'),
    ticks: first.querySelectorAll('.ticks text').length,
  });
  const seen = JSON.parse(document.body.getAttribute('data-seen'));
  seen.heights = [...document.querySelectorAll('figure svg:not(.zoom)')].map(svg => svg.getBoundingClientRect())
    .filter(box => box.width < 1 || box.height < 1).length;
  seen.came = view();
  const box = first.getBoundingClientRect();
  const event = (type, share) => new PointerEvent(type,
    { bubbles: true, cancelable: true, button: 0, clientX: box.left + box.width * share, clientY: box.top + 20 });
  first.dispatchEvent(event('pointerdown', 0.25));
  first.dispatchEvent(event('pointermove', 0.5));
  seen.shaded = document.querySelectorAll('.pick').length;
  first.dispatchEvent(event('pointerup', 0.5));
  seen.dragged = view();
  document.querySelector('.range').dispatchEvent(new KeyboardEvent('keydown', { key: '+', bubbles: true }));
  seen.closer = view();
  dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
  seen.all = view();
  seen.left = document.querySelectorAll('.pick').length;
  document.body.setAttribute('data-seen', JSON.stringify(seen));
</script>";

/// Writes the page of a log with scripts of ours at its end.
fn page(bench: &Bench, name: &str, scripts: &str) -> PathBuf {
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
    let scripts = format!("{scripts}</body>");
    bench.write("probed.html", &ended.stdout.replace("</body>", &scripts))
}

/// Width of the view box of each picture, of the 100 000 that are all of the time.
fn widths(picture: &serde_json::Value) -> Vec<f64> {
    let boxes = picture["boxes"].as_array().unwrap();
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
        let page = page(&bench, name, &format!("{PROBE}{HANDS}"));
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
            let label = seen["dragged"]["label"].as_str().unwrap();
            assert!(label.contains(" to ") && label.contains(" of "), "{label}");
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
    let page = page(&bench, "own_jdk17-parallel.log", &format!("{PROBE}{HANDS}"));
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
        range["label"].as_str().unwrap().contains("0:00:01.0"),
        "{range}"
    );
    assert!(
        widths(&range).iter().all(|width| *width < 99_000.0),
        "{range}"
    );
}

/// Where the second picture lies, after it was brought into sight.
const PICTURE: &str = r"(() => {
  const picture = document.querySelectorAll('svg.time')[1];
  picture.scrollIntoView({ block: 'center', behavior: 'instant' });
  const box = picture.getBoundingClientRect();
  return [box.left, box.top, box.width, box.height];
})()";

/// Share of the time that the pictures show.
const SHARE: &str =
    "+document.querySelector('svg.time .zoom').getAttribute('viewBox').split(' ')[2] / 1e5";

fn numbers<const COUNT: usize>(value: &serde_json::Value) -> [f64; COUNT] {
    let numbers = value.as_array().unwrap().iter();
    let numbers: Vec<f64> = numbers.map(|number| number.as_f64().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn a_finger_along_a_picture_looks_closer_and_one_across_it_scrolls() {
    let bench = Bench::new();
    let page = page(&bench, "own_jdk17-parallel.log", "");
    let mut browser = Browser::start(&bench, [500, 900]);
    browser.has_touch_screen();
    browser.open(&page);
    let [left, top, width, height] = numbers(&browser.value(PICTURE));
    let middle = top + height / 2.0;
    let along = [0.25, 0.3, 0.35, 0.4, 0.45, 0.5].map(|share| [left + share * width, middle]);
    browser.finger(&along);
    browser.until("document.querySelectorAll('.pick').length === 0");
    let share = browser.value(SHARE).as_f64().unwrap();
    assert!((share - 0.25).abs() < 0.02, "{share} of the time is shown");

    // Up over the picture: the page moves, the range stays, and no shade is left.
    let [left, top, width, height] = numbers(&browser.value(PICTURE));
    let across: Vec<[f64; 2]> = (0..10)
        .map(|step| {
            let along = left + width / 2.0 + f64::from(step);
            [along, top + height - 20.0 * f64::from(step)]
        })
        .collect();
    let resting = browser.value("scrollY").as_f64().unwrap();
    browser.finger(&across);
    browser.until(&format!("Math.abs(scrollY - {resting}) > 50"));
    assert_eq!(browser.value(SHARE).as_f64(), Some(share));
    assert_eq!(
        browser.value("document.querySelectorAll('.pick').length"),
        0
    );

    // The buttons are large enough for a finger (WCAG 2.2, 2.5.8), and the last one shows all again.
    let least = "Math.min(...[...document.querySelectorAll('.range button')].flatMap(button => {
        const box = button.getBoundingClientRect(); return [box.width, box.height]; }))";
    assert!(browser.value(least).as_f64().unwrap() >= 24.0);
    let all = r"(() => {
        const box = [...document.querySelectorAll('.range button')].at(-1).getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
    })()";
    let all = numbers::<2>(&browser.value(all));
    // A finger that comes down while the page still slides only stops it.
    let rests = "new Promise(done => { const was = scrollY; setTimeout(() => done(scrollY === was), 200); })";
    browser.until(rests);
    browser.finger(&[all]);
    browser.until(&format!("{SHARE} === 1"));
}

/// Every text with less contrast to what lies behind it than a person with tired eyes can read (WCAG 2.2, 1.4.3), and every line
/// and mark of a picture that is hard to see (1.4.11).
pub(crate) const PALE: &str = r"(() => {
  const rgba = text => {
    const parts = (text.match(/[\d.]+/g) ?? []).map(Number);
    return text.startsWith('rgb') ? [...parts.slice(0, 3), parts[3] ?? 1] : null;
  };
  const light = ([r, g, b]) => {
    const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const contrast = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const opaque = color => color && color[3] > 0.99 ? color : null;
  const behind = (element, x, y) => {
    const stack = document.elementsFromPoint(x, y);
    // A text may have a ground of its own; of a drawn one the fill is the text.
    for (const other of stack.slice(stack.indexOf(element) + (element instanceof SVGElement ? 1 : 0))) {
      const style = getComputedStyle(other);
      const color = other instanceof SVGGeometryElement ? rgba(style.fill) : rgba(style.backgroundColor);
      if (opaque(color)) return color;
    }
    return [255, 255, 255, 1];
  };
  const pale = [];
  let texts = 0, marks = 0;
  for (const element of document.querySelectorAll('main *')) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!box.width && !box.height || style.visibility !== 'visible') continue;
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const drawn = element instanceof SVGElement;
    const x = box.left + box.width / 2, y = box.top + box.height / 2;
    if (own && !['TITLE', 'STYLE', 'SCRIPT', 'title'].includes(element.tagName)) {
      if (element.closest('.sr') || !document.elementsFromPoint(x, y).includes(element)) continue;
      texts++;
      const large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700;
      const ratio = contrast(rgba(drawn ? style.fill : style.color), behind(element, x, y));
      if (ratio < (large ? 3 : 4.5)) pale.push(`${ratio.toFixed(2)}: ${element.textContent.trim().slice(0, 40)}`);
    } else if (drawn && element.matches('.p, .l') && !element.matches('.hole')) {
      marks++;
      const ratio = contrast(rgba(style.stroke), rgba(getComputedStyle(document.body).backgroundColor));
      if (ratio < 3) pale.push(`${ratio.toFixed(2)}: ${element.getAttribute('class')}`);
    }
  }
  return { pale: [...new Set(pale)], texts, marks, ground: light(rgba(getComputedStyle(document.body).backgroundColor)) };
})()";

#[test]
fn the_page_can_be_read_in_the_dark_and_in_daylight() {
    let bench = Bench::new();
    for name in [
        "own_jdk17-parallel.log",
        "gctoolkit_unified_g1gc_jdk11_details.log.zip",
    ] {
        let page = page(&bench, name, "");
        // As high as the page: what is out of sight has nothing behind it that could be asked for.
        let mut browser = Browser::start(&bench, [1200, 16_000]);
        for (scheme, dark) in [("light", false), ("dark", true)] {
            browser.prefers(scheme);
            browser.open(&page);
            let seen = browser.value(PALE);
            let ground = seen["ground"].as_f64().unwrap();
            assert!(
                if dark { ground < 0.05 } else { ground > 0.8 },
                "{scheme}: {ground}"
            );
            assert!(
                seen["texts"].as_u64().unwrap() > 100,
                "{name}, {scheme}: {seen}"
            );
            assert!(
                seen["marks"].as_u64().unwrap() > 3,
                "{name}, {scheme}: {seen}"
            );
            assert_eq!(seen["pale"], serde_json::json!([]), "{name}, {scheme}");
        }
    }
}
