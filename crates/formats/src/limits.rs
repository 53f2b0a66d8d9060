//! `/proc/PID/limits`: what a process may have at most.
//!
//! A header, then a line per limit: its name, the soft and the hard limit, the unit (`fs/proc/base.c`, Linux 6.18). Names
//! have spaces in them; from the first number, or `unlimited`, on there are none.

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit<'a> {
    /// As printed, without its `Max`: `open files`.
    pub name: &'a str,
    /// What holds; `None` for unlimited.
    pub soft: Option<u64>,
    /// How far the process may raise it by itself; `None` for unlimited.
    pub hard: Option<u64>,
    /// What both are counted in: `bytes`, `files`; empty where the kernel names nothing.
    pub unit: &'a str,
}

/// The limits in their order; lines that are none are left out.
pub fn parse(text: &str) -> impl Iterator<Item = Limit<'_>> {
    text.lines().filter_map(line)
}

fn line(line: &str) -> Option<Limit<'_>> {
    let rest = line.strip_prefix("Max ")?;
    let figures = rest.find(|c: char| c.is_ascii_digit()).into_iter();
    let start = figures.chain(rest.find("unlimited")).min()?;
    let mut words = rest[start..].split_ascii_whitespace();
    let mut figure = || match words.next()? {
        "unlimited" => Some(None),
        digits => digits.parse().ok().map(Some),
    };
    Some(Limit {
        name: rest[..start].trim_end(),
        soft: figure()?,
        hard: figure()?,
        unit: words.next().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_spaces_and_no_limit_is_none() {
        let text = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max open files            1024                 524288               files     
Max nice priority         0                    0                    
Max broken                12
";
        let limits: Vec<_> = parse(text).collect();
        assert_eq!(limits.len(), 3, "{limits:?}");
        assert_eq!((limits[0].name, limits[0].soft), ("cpu time", None));
        let files = Limit {
            name: "open files",
            soft: Some(1024),
            hard: Some(524_288),
            unit: "files",
        };
        assert_eq!(limits[1], files);
        assert_eq!((limits[2].name, limits[2].unit), ("nice priority", ""));
    }
}
