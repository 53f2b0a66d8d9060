//! Values of flags that several verbs take.

use rungwise_model::units;

/// Most CPUs of a kernel: `NR_CPUS` of x86-64 with `MAXSMP`, arch/x86/Kconfig of Linux 6.18.
const MOST_CPUS: usize = 8192;

/// The CPUs that threads are pinned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pins {
    /// Those that this process may use, in turn.
    Allowed,
    /// These, in this order.
    List(Vec<usize>),
}

/// Bytes, as in `100B`, that fit into memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let bytes = units::bytes(text).map_err(|error| error.to_string())?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

/// `0,2-5`, or `allowed` where no list was given. The order is kept, and a CPU may come twice.
pub(crate) fn pins(text: &str) -> Result<Pins, String> {
    if text == "allowed" {
        return Ok(Pins::Allowed);
    }
    let number = |word: &str| {
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let cpu = word.parse::<usize>().ok().filter(|_| digits);
        cpu.filter(|cpu| *cpu < MOST_CPUS)
            .ok_or_else(|| format!("cannot read '{text}' as CPUs; write the list as 0,2-5"))
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!(
                "cannot read '{part}' as CPUs: it runs backwards; write it as {last}-{first}"
            ));
        }
        cpus.extend(first..=last);
    }
    Ok(Pins::List(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_read_or_refused_with_an_example() {
        assert_eq!(pins("0,2-3").unwrap(), Pins::List(vec![0, 2, 3]));
        assert_eq!(pins("5,1").unwrap(), Pins::List(vec![5, 1]));
        assert_eq!(pins("allowed").unwrap(), Pins::Allowed);
        for bad in ["", "a", "0,", "1-", "1-2-3", "+1", "8192", "0-4294967295"] {
            assert!(pins(bad).unwrap_err().contains("0,2-5"), "{bad}");
        }
        assert!(pins("3-1").unwrap_err().contains("write it as 1-3"));
    }

    #[test]
    fn a_size_has_a_unit() {
        assert_eq!(size("2KiB").unwrap(), 2048);
        assert!(size("100").is_err());
    }
}
