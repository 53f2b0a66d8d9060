//! A GC log without an end, from one that has one: round after round, with uptimes and numbers of collections that go on, so
//! that it is one run of one JVM. Dates stay as they are: where there are uptimes, those count.

/// Makes rounds of a log of unified logging whose uptimes have the form `[12.345s]`.
#[derive(Clone, Debug)]
pub struct EndlessLog {
    parts: Vec<Part>,
    /// Length of a round.
    round_ms: u64,
    /// Collections of a round.
    ids: u64,
}

#[derive(Clone, Debug)]
enum Part {
    Text(Vec<u8>),
    UptimeMs(u64),
    Id(u64),
}

impl EndlessLog {
    /// From a log, of which the lines before the first collection are left out: a header would begin another run.
    pub fn new(log: &str) -> Self {
        let mut all = Self {
            parts: vec![Part::Text(Vec::new())],
            round_ms: 0,
            ids: 0,
        };
        for line in log.lines().skip_while(|line| !line.contains("] GC(")) {
            let mut rest = line;
            if let Some((before, ms, after)) = uptime(rest) {
                all.text(before);
                all.parts.push(Part::UptimeMs(ms));
                all.round_ms = all.round_ms.max(ms + 1);
                rest = after;
            }
            if let Some((before, id, after)) = number(rest) {
                all.text(before);
                all.parts.push(Part::Id(id));
                all.ids = all.ids.max(id + 1);
                rest = after;
            }
            all.text(rest);
            all.text("\n");
        }
        all
    }

    /// Appends the round of this number, from 0.
    pub fn round(&self, number: u64, to: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => to.extend_from_slice(text),
                Part::UptimeMs(ms) => {
                    let ms = ms + number * self.round_ms;
                    to.extend_from_slice(format!("{}.{:03}", ms / 1000, ms % 1000).as_bytes());
                }
                Part::Id(id) => {
                    to.extend_from_slice((id + number * self.ids).to_string().as_bytes());
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(before)) => before.extend_from_slice(text.as_bytes()),
            _ => self.parts.push(Part::Text(text.as_bytes().to_vec())),
        }
    }
}

/// What is before the uptime, the uptime in milliseconds, what is behind it.
fn uptime(line: &str) -> Option<(&str, u64, &str)> {
    let end = line.find("s]")?;
    let start = line[..end].rfind('[')? + 1;
    let (seconds, ms) = line[start..end].split_once('.')?;
    let ms = (ms.len() == 3).then(|| ms.parse::<u64>().ok())??;
    Some((
        &line[..start],
        seconds.parse::<u64>().ok()? * 1000 + ms,
        &line[end..],
    ))
}

/// The same of the number in `GC(12)`.
fn number(line: &str) -> Option<(&str, u64, &str)> {
    let start = line.find("GC(")? + 3;
    let end = start + line[start..].find(')')?;
    Some((&line[..start], line[start..end].parse().ok()?, &line[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_on_in_time_and_number() {
        let log = EndlessLog::new(
            "[0.100s][info][gc] Using G1\n\
             [0.512s][info][gc] GC(0) Pause Remark 1M->1M(9M) 3.524ms\n\
             [1.999s][info][gc] GC(1) Pause Remark 1M->1M(9M) 3.524ms\n",
        );
        let mut text = Vec::new();
        log.round(1, &mut text);
        log.round(2, &mut text);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "[2.512s][info][gc] GC(2) Pause Remark 1M->1M(9M) 3.524ms\n\
             [3.999s][info][gc] GC(3) Pause Remark 1M->1M(9M) 3.524ms\n\
             [4.512s][info][gc] GC(4) Pause Remark 1M->1M(9M) 3.524ms\n\
             [5.999s][info][gc] GC(5) Pause Remark 1M->1M(9M) 3.524ms\n"
        );
    }
}
