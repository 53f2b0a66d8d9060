//! `JMeter`'s results: CSV with a line of names, or XML.

use super::{CLOSED_LOOP, Figures, Reader, text};

pub(super) static READER: Reader = Reader {
    id: "jtl",
    summary: "JMeter 2.13 to 5.6: -l {output}, as CSV with a header line or as XML",
    caveat: CLOSED_LOOP,
    gives: &[
        "rate", "errors", "mean", "p50", "p90", "p95", "p99", "p99.9", "max",
    ],
    looks_like: |text| is_csv(text) || text.contains("<testResults"),
    read,
};

fn is_csv(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let mut names = first.split(',');
    names.clone().any(|name| name == "timeStamp") && names.any(|name| name == "elapsed")
}

/// One sample: when it began and how long it took, milliseconds, and whether it went well.
struct Sampled {
    began_ms: f64,
    took_ms: f64,
    is_good: bool,
}

fn read(output: &str) -> Result<Figures, String> {
    let samples = if is_csv(output) {
        csv(output)
    } else {
        xml(output)
    }?;
    if samples.is_empty() {
        return Err(
            "it has no samples: the plan sent nothing. Where its loops or threads are ${__P(...)}, the jar ApacheJMeter_functions must be on the \
             class path"
                .to_owned(),
        );
    }
    let mut figures = Figures::default();
    let good = samples.iter().filter(|sample| sample.is_good).count() as f64;
    let all = samples.len() as f64;
    figures.failed(all - good, all);
    let began = samples
        .iter()
        .map(|sample| sample.began_ms)
        .fold(f64::INFINITY, f64::min);
    let ended = samples
        .iter()
        .map(|sample| sample.began_ms + sample.took_ms)
        .fold(f64::NEG_INFINITY, f64::max);
    let seconds = ((ended - began) / 1e3).max(1e-3);
    figures.seconds = Some(seconds);
    figures.rate_per_s = Some(good / seconds);
    let mut latencies: Vec<f64> = samples.iter().map(|sample| sample.took_ms / 1e3).collect();
    text::quantiles(&mut figures, &mut latencies);
    Ok(figures)
}

fn csv(output: &str) -> Result<Vec<Sampled>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(output.as_bytes());
    let names = reader.headers().map_err(|error| error.to_string())?.clone();
    let column = |name: &str| {
        let place = names.iter().position(|known| known == name);
        place.ok_or_else(|| {
            format!(
                "the header line has no column '{name}'; set jmeter.save.saveservice.{name}=true"
            )
        })
    };
    let (began, took, success) = (column("timeStamp")?, column("elapsed")?, column("success")?);
    let mut samples = Vec::new();
    for (number, row) in reader.records().enumerate() {
        let row = row.map_err(|error| format!("line {}: {error}", number + 2))?;
        let value = |place: usize| row.get(place).and_then(|cell| cell.parse::<f64>().ok());
        // The last line of a run that was killed is cut.
        let (Some(began_ms), Some(took_ms)) = (value(began), value(took)) else {
            continue;
        };
        samples.push(Sampled {
            began_ms,
            took_ms,
            is_good: row.get(success) == Some("true"),
        });
    }
    Ok(samples)
}

fn xml(output: &str) -> Result<Vec<Sampled>, String> {
    use quick_xml::events::Event;

    let mut reader = quick_xml::Reader::from_str(output);
    let mut samples = Vec::new();
    let mut depth = 0_usize;
    loop {
        let (element, is_open) = match reader.read_event() {
            Ok(Event::Start(element)) => (element, true),
            Ok(Event::Empty(element)) => (element, false),
            Ok(Event::End(element)) => {
                depth -= usize::from(is_sample(element.name().as_ref()) && depth > 0);
                continue;
            }
            Ok(Event::Eof) => return Ok(samples),
            Ok(_) => continue,
            // A run that was killed leaves no end.
            Err(_) if !samples.is_empty() => return Ok(samples),
            Err(error) => return Err(format!("not XML: {error}")),
        };
        if !is_sample(element.name().as_ref()) {
            continue;
        }
        // Samples within a sample are its parts (redirects, pages with pictures).
        if depth == 0 {
            let value = |name: &str| -> Option<String> {
                let attribute = element.try_get_attribute(name).ok()??;
                Some(String::from_utf8_lossy(&attribute.value).into_owned())
            };
            let number = |name: &str| value(name)?.parse::<f64>().ok();
            if let (Some(began_ms), Some(took_ms)) = (number("ts"), number("t")) {
                samples.push(Sampled {
                    began_ms,
                    took_ms,
                    is_good: value("s").as_deref() == Some("true"),
                });
            }
        }
        depth += usize::from(is_open);
    }
}

fn is_sample(name: &[u8]) -> bool {
    matches!(name, b"httpSample" | b"sample")
}
