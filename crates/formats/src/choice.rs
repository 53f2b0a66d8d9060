//! A setting that prints all its values with the present one in brackets: `always [madvise] never`.
//!
//! So do transparent huge pages (`mm/huge_memory.c`) and block schedulers (`block/elevator.c`, Linux 6.18). A
//! device without a choice prints one bare word.

/// The value in force.
pub fn selected(text: &str) -> Option<&str> {
    let mut words = text.split_ascii_whitespace();
    let bracketed = words
        .clone()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed.or_else(|| {
        let only = words.next()?;
        words.next().is_none().then_some(only)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_word_in_brackets_is_in_force_or_the_only_one() {
        assert_eq!(selected("always [madvise] never\n"), Some("madvise"));
        assert_eq!(selected("[none] mq-deadline kyber bfq \n"), Some("none"));
        assert_eq!(selected("none\n"), Some("none"));
        assert_eq!(selected("always madvise"), None);
        assert_eq!(selected(""), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            selected(&text);
        }
    }
}
