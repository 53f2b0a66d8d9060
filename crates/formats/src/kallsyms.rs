//! `/proc/kallsyms`: the functions of the running kernel by address.
//!
//! One symbol a line: address, kind, name, and `[module]` behind those of modules. Sizes are not told, so a
//! function reaches to the next one. The kernel prints zeros instead of addresses to whom it does not trust
//! (`kptr_restrict`); that is told apart from a text that is something else.
//! Source: kernel/kallsyms.c of Linux 6.18, `kallsyms_show_value`.

use std::cmp::Reverse;

/// No function of a kernel is longer; what lies further behind one belongs to none. A guess, on the long side.
const LONGEST_FUNCTION: u64 = 1 << 20;

/// Functions by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    text: String,
    /// Sorted by address, one per address; the name is a range of `text`.
    functions: Vec<Function>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    address: u64,
    from: usize,
    to: usize,
}

/// Why a text names no function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The kernel shows no addresses to this reader.
    Hidden,
    /// It is no list of symbols.
    Foreign,
}

impl Symbols {
    /// Reads the whole file; lines that are no symbols of code are left out.
    pub fn parse(text: String) -> Result<Self, Unreadable> {
        let mut seen = false;
        let mut found = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let begins = at;
            at += line.len();
            let Some((address, kind, name)) = symbol(line) else {
                continue;
            };
            seen = true;
            if address == 0 {
                continue;
            }
            // `name` is a part of `line`, which begins there.
            let from = begins + (name.as_ptr() as usize - line.as_ptr() as usize);
            let function = Function {
                address,
                from,
                to: from + name.len(),
            };
            // Of several names for one address, the one that a reader of the sources would look for.
            let underscores = name.len() - name.trim_start_matches('_').len();
            found.push((address, Reverse(kind), underscores, function));
        }
        // Stable: among equals the first in the file stays.
        found.sort_by_key(|(address, kind, underscores, _)| (*address, *kind, *underscores));
        found.dedup_by_key(|(address, ..)| *address);
        if found.is_empty() {
            return Err(if seen {
                Unreadable::Hidden
            } else {
                Unreadable::Foreign
            });
        }
        let functions = found.into_iter().map(|(.., function)| function).collect();
        Ok(Self { text, functions })
    }

    /// The function that holds this address.
    pub fn function(&self, address: u64) -> Option<&str> {
        let after = self
            .functions
            .partition_point(|function| function.address <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (address - function.address < LONGEST_FUNCTION)
            .then(|| self.text.get(function.from..function.to))
            .flatten()
    }

    /// Functions known.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether none is known; never so for what [`Symbols::parse`] returns.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

/// How much a symbol stands out: code that is local to its file, weak, global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Local,
    Weak,
    Global,
}

/// Address, kind and name of a symbol of code.
fn symbol(line: &str) -> Option<(u64, Standing, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let standing = match words.next()? {
        "T" => Standing::Global,
        "W" | "w" => Standing::Weak,
        "t" => Standing::Local,
        _ => return None,
    };
    // `$x` and the like mark the instruction set on Arm, they name nothing.
    let name = words.next().filter(|name| !name.starts_with('$'))?;
    Some((address, standing, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T srso_alias_untrain_ret
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81a00000 t udp_queue_rcv_one_skb
ffffffff81a00400 t __pfx_udp_queue_rcv_skb
ffffffff81a00410 t udp_queue_rcv_skb
ffffffff81a00600 W __weak_name
ffffffff81a00600 T strong_name
ffffffff82000000 D some_data
ffffffffc0000000 t nft_do_chain\t[nf_tables]
not a symbol
";

    #[test]
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let symbols = Symbols::parse(TEXT.to_owned()).unwrap();
        assert_eq!(symbols.len(), 6);
        let name = |address| symbols.function(address);
        assert_eq!(name(0xffff_ffff_81a0_03ff), Some("udp_queue_rcv_one_skb"));
        assert_eq!(name(0xffff_ffff_81a0_0410), Some("udp_queue_rcv_skb"));
        assert_eq!(name(0xffff_ffff_c000_0010), Some("nft_do_chain"));
        // Before the first, and far behind the last of the kernel's own code.
        assert_eq!(name(0xffff_ffff_80ff_ffff), None);
        assert_eq!(name(0xffff_ffff_8300_0000), None);
    }

    #[test]
    fn of_several_names_the_global_one_with_fewest_underscores_is_told() {
        let symbols = Symbols::parse(TEXT.to_owned()).unwrap();
        assert_eq!(symbols.function(0xffff_ffff_81a0_0600), Some("strong_name"));
        assert_eq!(
            symbols.function(0xffff_ffff_8100_0000),
            Some("srso_alias_untrain_ret")
        );
    }

    #[test]
    fn hidden_addresses_are_told_from_a_text_that_is_no_list() {
        let hidden = "0000000000000000 T _text\n0000000000000000 t do_one\n";
        assert_eq!(Symbols::parse(hidden.to_owned()), Err(Unreadable::Hidden));
        for foreign in ["", "cpu 1 2 3\n", "12 X a\n"] {
            assert_eq!(Symbols::parse(foreign.to_owned()), Err(Unreadable::Foreign));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9a-f]{0,18}[ \t]?[tTwWD]?[ \t]?[$_a-zé]{0,4}[ \t\n]?){0,20}", address: u64) {
            if let Ok(symbols) = Symbols::parse(text) {
                let _ = symbols.function(address);
            }
        }
    }
}
