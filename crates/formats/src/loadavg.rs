//! `/proc/loadavg`: tasks that ran, waited for a CPU or slept uninterruptibly, averaged.
//!
//! Source: fs/proc/loadavg.c, Linux 6.18.

/// Mean over one minute; `None` if the text is something else.
pub fn parse(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    let one: f64 = words.next()?.parse().ok()?;
    // Five and fifteen minutes, tasks, last pid: a number alone is some other file.
    (words.count() >= 3 && one.is_finite() && one >= 0.0).then_some(one)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_number_is_the_minute() {
        assert_eq!(parse("5.56 5.15 4.06 1/109 1385\n"), Some(5.56));
        assert_eq!(parse("5.56\n"), None);
        assert_eq!(parse("inf 1 1 1/1 1"), None);
        assert_eq!(parse(""), None);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".*") {
            let _ = parse(&text);
        }
    }
}
