//! The input of a prediction: sizes as people and JVMs write them, and `young=12g,tenuring=15`.

use rungwise_gclog::predict::{Change, Given};
use rungwise_jvm::{CommandLine, Origin};
use rungwise_model::units;

/// A size in either manner: `12g` as an option of the JVM, `12GiB` as everywhere else here.
pub(super) fn size(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let bare = text.chars().all(|c| c.is_ascii_digit());
    if let Some(bytes) = rungwise_jvm::bytes(text).filter(|_| !bare) {
        return Ok(bytes as f64);
    }
    units::bytes(text)
        .map(|bytes| bytes as f64)
        .map_err(|error| format!("{error}, or in JVM form: 64k, 512m or 12g"))
}

const KEYS: [&str; 6] = [
    "young",
    "eden",
    "survivor-ratio",
    "tenuring",
    "heap",
    "rate",
];

/// Reads `young=12g,tenuring=15`. `rate` is the load of the log, where it is known.
pub(super) fn change(text: &str, rate: Option<f64>) -> anyhow::Result<Change> {
    let mut change = Change {
        asked: text.to_owned(),
        ..Change::default()
    };
    let mut seen = Vec::new();
    for part in text.split(',') {
        let Some((key, value)) = part.split_once('=') else {
            anyhow::bail!(
                "cannot read '{part}' of --what-if: write it as key=value, such as young=12g"
            );
        };
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            anyhow::bail!("'{key}' appears twice in --what-if");
        }
        seen.push(key);
        let positive = || {
            let size =
                size(value).map_err(|error| anyhow::anyhow!("{key} of --what-if: {error}"))?;
            anyhow::ensure!(size > 0.0, "{key} of --what-if: the size is zero");
            Ok(Some(size))
        };
        match key {
            "young" => change.young = positive()?,
            "eden" => change.eden = positive()?,
            "heap" => change.heap = positive()?,
            "survivor-ratio" => {
                let ratio = value
                    .parse()
                    .ok()
                    .filter(|ratio| (1..=1000).contains(ratio));
                let Some(ratio): Option<u32> = ratio else {
                    anyhow::bail!(
                        "survivor-ratio of --what-if: '{value}' is not a whole number from 1 on; it is Eden divided by one survivor \
                         space"
                    );
                };
                change.survivor_ratio = Some(f64::from(ratio));
            }
            "tenuring" => {
                let age = value.parse().ok().filter(|age| *age <= 15);
                let Some(age): Option<u32> = age else {
                    anyhow::bail!(
                        "tenuring of --what-if: '{value}' is not a whole number from 0 to 15; an object has four bits for its age"
                    );
                };
                change.tenuring = Some(age);
            }
            "rate" => change.rate = factor(value, rate)?,
            other => {
                let near = KEYS.into_iter().max_by(|a, b| {
                    strsim::jaro_winkler(a, other).total_cmp(&strsim::jaro_winkler(b, other))
                });
                anyhow::bail!(
                    "'{other}' is not a key of --what-if; did you mean {}? Keys: {}",
                    near.unwrap_or_default(),
                    KEYS.join(", ")
                );
            }
        }
    }
    Ok(change)
}

fn factor(value: &str, rate: Option<f64>) -> anyhow::Result<f64> {
    let factor = if let Some(factor) = value.strip_prefix('x') {
        factor.parse().ok()
    } else {
        let wanted = units::per_second(value).map_err(|error| {
            anyhow::anyhow!("rate of --what-if: {error}, or x2 for twice the load")
        })?;
        let Some(rate) = rate else {
            anyhow::bail!(
                "rate={value} of --what-if: the request rate of the log is unknown; pass it with --rate or --requests, or use \
                 a multiple such as rate=x2"
            );
        };
        Some(wanted / rate)
    };
    let factor = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| {
        anyhow::anyhow!("rate of --what-if: '{value}' is not a multiple; write it as x2 or x0.5")
    })
}

/// What the options say of sizes, as the log's header names them.
pub(super) fn of_flags(flags: &str) -> Given {
    let line = CommandLine::parse_printed(flags, Origin::Log);
    let number = |name: &str| line.setting(name)?.number();
    let size = |name: &str| number(name).map(|bytes| bytes as f64);
    // A fixed young generation; else the collector may move it.
    let young = size("MaxNewSize").filter(|young| size("NewSize") == Some(*young));
    let share = |name: &str| number(name).map(|percent| percent as f64 / 100.0);
    let adaptive = line
        .setting("UseAdaptiveSizePolicy")
        .and_then(rungwise_jvm::Setting::switch);
    Given {
        heap: size("MaxHeapSize"),
        young,
        survivor_ratio: size("SurvivorRatio"),
        max_tenuring: number("MaxTenuringThreshold").and_then(|age| u32::try_from(age).ok()),
        target_survivor: share("TargetSurvivorRatio"),
        adaptive: Some(adaptive.unwrap_or(true)),
        cycle_at: share("CMSInitiatingOccupancyFraction"),
        ..Given::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_manners_and_never_without_a_unit() {
        assert_eq!(size("12g"), Ok(12.0 * 1_073_741_824.0));
        assert_eq!(size("34KiB"), Ok(34.0 * 1024.0));
        let error = size("512").unwrap_err();
        assert!(
            error.contains("unit is missing") && error.contains("512m"),
            "{error}"
        );
    }

    #[test]
    fn a_change_is_read_and_a_wrong_one_says_what_would_be_right() {
        let asked = change("young=12g,tenuring=15,rate=800/s", Some(400.0)).unwrap();
        assert_eq!(
            (asked.young, asked.tenuring, asked.rate),
            (Some(12e0 * 1_073_741_824.0), Some(15), 2.0)
        );
        for (text, words) in [
            ("yuong=12g", "did you mean young?"),
            ("tenuring=31", "four bits"),
            ("survivor-ratio=0", "from 1 on"),
            ("young=12", "unit is missing"),
            ("young", "key=value"),
            ("rate=800/s", "--rate or --requests"),
            ("rate=x0", "not a multiple"),
            ("eden=1g,eden=2g", "twice"),
            ("heap=0m", "zero"),
        ] {
            let error = change(text, None).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn options_tell_what_the_log_does_not() {
        let given = of_flags(
            "-Xmx4g -Xmn1g -XX:SurvivorRatio=6 -XX:-UseAdaptiveSizePolicy -XX:MaxTenuringThreshold=4",
        );
        assert_eq!(given.young, Some(1_073_741_824.0));
        assert_eq!(
            (given.survivor_ratio, given.max_tenuring, given.adaptive),
            (Some(6.0), Some(4), Some(false))
        );
        assert_eq!(of_flags("-XX:NewSize=1m -XX:MaxNewSize=2m").young, None);
    }
}
