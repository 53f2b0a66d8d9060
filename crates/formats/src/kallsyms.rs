//! `/proc/kallsyms`: the functions of the running kernel by address.
//!
//! One symbol per line: address, kind, name, and `[module]` after symbols of modules. There are no sizes, so a
//! function extends to the next one. The kernel prints zeros instead of addresses to untrusted readers
//! (`kptr_restrict`); this differs from a text in another format. The file has 120,000 lines or more, and a window
//! of samples hits a few hundred functions: the caller passes the addresses first, the text is read once, and only
//! the names needed are kept.
//! Source: kernel/kallsyms.c of Linux 6.18, `kallsyms_show_value`.

use std::io::{self, BufRead};

/// No kernel function is longer; an address further behind a symbol belongs to none. A guess, on the high side.
const LONGEST_FUNCTION: u64 = 1 << 20;

/// Why a text contains no function names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The kernel shows no addresses to this reader.
    Hidden,
    /// The text is not a list of symbols.
    Foreign,
}

/// Whether a text with this beginning contains function names.
pub fn judge(beginning: &[u8]) -> Result<(), Unreadable> {
    let mut why = Unreadable::Foreign;
    for symbol in beginning.split(|byte| *byte == b'\n').filter_map(symbol) {
        if symbol.address != 0 {
            return Ok(());
        }
        why = Unreadable::Hidden;
    }
    Err(why)
}

/// Addresses, and the functions that contain them.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Sorted by address.
    wanted: Vec<Wanted>,
}

#[derive(Clone, Debug)]
struct Wanted {
    address: u64,
    /// Where its function begins, and how well the name is chosen; none while no function is known.
    found: Option<(u64, Rank)>,
    name: String,
}

impl Names {
    /// These addresses, without names yet.
    pub fn for_addresses(addresses: impl IntoIterator<Item = u64>) -> Self {
        let mut addresses: Vec<u64> = addresses.into_iter().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let wanted = |address| Wanted {
            address,
            found: None,
            name: String::new(),
        };
        Self {
            wanted: addresses.into_iter().map(wanted).collect(),
        }
    }

    /// Names them from a list of symbols in any order; lines that are not code symbols are skipped.
    pub fn read(&mut self, mut text: impl BufRead) -> io::Result<()> {
        let mut reading = Reading {
            wanted: &mut self.wanted,
            next: 0,
            last: None,
        };
        let mut line = Vec::new();
        while text.read_until(b'\n', &mut line)? > 0 {
            reading.line(&line);
            line.clear();
        }
        reading.settle(None);
        Ok(())
    }

    /// The function that contains this address; `None` also for an address that was not passed.
    pub fn function(&self, address: u64) -> Option<&str> {
        let at = self
            .wanted
            .binary_search_by_key(&address, |wanted| wanted.address)
            .ok()?;
        let wanted = &self.wanted[at];
        wanted.found.map(|_| wanted.name.as_str())
    }
}

/// Functions that are known already, each by an address in it.
impl FromIterator<(u64, String)> for Names {
    fn from_iter<T: IntoIterator<Item = (u64, String)>>(functions: T) -> Self {
        let known = |(address, name)| Wanted {
            address,
            found: Some((address, (Standing::Global, 0))),
            name,
        };
        let mut wanted: Vec<Wanted> = functions.into_iter().map(known).collect();
        wanted.sort_by_key(|one| one.address);
        Self { wanted }
    }
}

/// A list of symbols as it passes by.
struct Reading<'n> {
    wanted: &'n mut [Wanted],
    /// The first of `wanted` that the last symbol may hold.
    next: usize,
    /// The last symbol, which holds what lies between it and the next.
    last: Option<Last>,
}

struct Last {
    address: u64,
    rank: Rank,
    /// As [`Symbol::name`].
    name: Vec<u8>,
}

impl Reading<'_> {
    fn line(&mut self, line: &[u8]) {
        let Some(Symbol {
            address,
            rank,
            name,
        }) = symbol(line).filter(|symbol| symbol.address != 0)
        else {
            return;
        };
        if let Some(last) = &mut self.last {
            if last.address == address {
                // Of several names for one address, the one that a reader of the sources would look for; among equals
                // the first in the file.
                if rank < last.rank {
                    last.rank = rank;
                    last.name.clear();
                    last.name.extend_from_slice(name);
                }
                return;
            }
            self.settle(Some(address));
        }
        match &self.last {
            Some(last) if last.address < address => {
                let before = |wanted: &&Wanted| wanted.address < address;
                self.next += self.wanted[self.next..].iter().take_while(before).count();
            }
            // Modules follow the kernel, and their own symbols are in no order.
            _ => {
                let before = |wanted: &Wanted| wanted.address < address;
                self.next = self.wanted.partition_point(before);
            }
        }
        let last = self.last.get_or_insert_with(|| Last {
            address,
            rank,
            name: Vec::new(),
        });
        last.address = address;
        last.rank = rank;
        last.name.clear();
        last.name.extend_from_slice(name);
    }

    /// Gives the name of the last symbol to what lies between it and the `following` one, unless a nearer one is known.
    fn settle(&mut self, following: Option<u64>) {
        let Some(last) = &self.last else { return };
        let begins = last.address;
        let following = following.filter(|following| *following > begins);
        let held = self.wanted[self.next..].iter_mut().take_while(|wanted| {
            wanted.address - begins < LONGEST_FUNCTION
                && following.is_none_or(|following| wanted.address < following)
        });
        for wanted in held {
            let better = wanted.found.is_none_or(|(known, rank)| {
                known < begins || (known == begins && last.rank < rank)
            });
            if better {
                let name = last.name.split(u8::is_ascii_whitespace).next();
                wanted.found = Some((begins, last.rank));
                wanted.name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
            }
        }
    }
}

/// A symbol of code.
struct Symbol<'t> {
    address: u64,
    rank: Rank,
    /// Begins here, and ends with a blank.
    name: &'t [u8],
}

/// Which name of a function is preferred, best first: a global name, then one with few leading underscores.
type Rank = (Standing, usize);

/// How much a symbol stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Global,
    Weak,
    Local,
}

/// Reads a line, with its end or without.
fn symbol(line: &[u8]) -> Option<Symbol<'_>> {
    let (address, rest) = hexadecimal(line.trim_ascii_start())?;
    let (kind, rest) = rest.trim_ascii_start().split_first()?;
    let standing = match kind {
        b'T' => Standing::Global,
        b'W' | b'w' => Standing::Weak,
        b't' => Standing::Local,
        _ => return None,
    };
    let name = rest
        .first()
        .filter(|byte| byte.is_ascii_whitespace())
        .map(|_| rest.trim_ascii_start())?;
    // `$x` and the like mark the instruction set on Arm, they name nothing.
    if name.is_empty() || name.starts_with(b"$") {
        return None;
    }
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    Some(Symbol {
        address,
        rank: (standing, underscores),
        name,
    })
}

/// A number of 1 to 16 digits before a blank, and what follows it.
fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in text.iter().enumerate().take(17) {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return (at > 0 && byte.is_ascii_whitespace()).then(|| (number, &text[at..])),
        };
        number = number << 4 | u64::from(digit);
    }
    None
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
ffffffffc0000400 t nft_do_later\t[nf_tables]
ffffffffc0000000 t nft_do_chain\t[nf_tables]
not a symbol
";

    fn name(text: &str, address: u64) -> Option<String> {
        names(text, &[address]).function(address).map(str::to_owned)
    }

    fn names(text: &str, addresses: &[u64]) -> Names {
        let mut names = Names::for_addresses(addresses.iter().copied());
        // Small pieces, so that lines are broken off.
        names
            .read(io::BufReader::with_capacity(7, text.as_bytes()))
            .unwrap();
        names
    }

    #[test]
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let expected = [
            (0xffff_ffff_81a0_03ff, Some("udp_queue_rcv_one_skb")),
            (0xffff_ffff_81a0_0410, Some("udp_queue_rcv_skb")),
            (0xffff_ffff_c000_0010, Some("nft_do_chain")),
            (0xffff_ffff_c000_0400, Some("nft_do_later")),
            // Before the first, and far behind the last of the kernel's own code.
            (0xffff_ffff_80ff_ffff, None),
            (0xffff_ffff_8300_0000, None),
        ];
        let addresses = expected.map(|(address, _)| address);
        let together = names(TEXT, &addresses);
        for (address, function) in expected {
            assert_eq!(name(TEXT, address).as_deref(), function, "{address:x}");
            assert_eq!(together.function(address), function, "{address:x}");
        }
        assert_eq!(together.function(0xffff_ffff_81a0_0411), None);
    }

    #[test]
    fn of_several_names_the_global_one_with_fewest_underscores_is_reported() {
        assert_eq!(
            name(TEXT, 0xffff_ffff_81a0_0600).as_deref(),
            Some("strong_name")
        );
        assert_eq!(
            name(TEXT, 0xffff_ffff_8100_0000).as_deref(),
            Some("srso_alias_untrain_ret")
        );
    }

    #[test]
    fn hidden_addresses_are_distinguished_from_a_text_that_is_no_list() {
        assert_eq!(judge(TEXT.as_bytes()), Ok(()));
        let hidden = "0000000000000000 T _text\n0000000000000000 t do_one\n0000";
        assert_eq!(judge(hidden.as_bytes()), Err(Unreadable::Hidden));
        for foreign in ["", "cpu 1 2 3\n", "12 X a\n"] {
            assert_eq!(judge(foreign.as_bytes()), Err(Unreadable::Foreign));
        }
    }

    /// What [`Names`] finds, by looking at every symbol for every address.
    fn plainly(text: &str, address: u64) -> Option<String> {
        text.lines()
            .filter_map(|line| symbol(line.as_bytes()))
            .filter(|symbol| symbol.address != 0 && symbol.address <= address)
            .filter(|symbol| address - symbol.address < LONGEST_FUNCTION)
            // Of equals the first.
            .min_by_key(|symbol| (std::cmp::Reverse(symbol.address), symbol.rank))
            .map(|symbol| String::from_utf8_lossy(symbol.name).trim_end().to_owned())
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9a-f]{0,18}[ \t]?[tTwWD]?[ \t]?[$_a-zé]{0,4}[ \t\n]?){0,20}", address: u64) {
            let _ = judge(text.as_bytes());
            let _ = names(&text, &[address]).function(address);
        }

        #[test]
        fn in_whatever_order_the_nearest_symbol_before_it_is_reported(
            text in "([1-9a]0{0,5} [tTwW] _{0,2}[a-z]{1,2}\n){0,30}",
            addresses in proptest::collection::vec(0_u64..0xb0_0000, 1..20),
        ) {
            let names = names(&text, &addresses);
            for address in addresses {
                prop_assert_eq!(names.function(address).map(str::to_owned), plainly(&text, address));
            }
        }
    }
}
