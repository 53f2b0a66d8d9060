//! `/proc/PID/numa_maps`: on which node the pages of a process lie.
//!
//! One line per mapping: policy, then `file=`, `heap`, `anon=5`, `N0=3 N1=2`, `kernelpagesize_kB=4`
//! (`fs/proc/task_mmu.c`, Linux 6.18). A huge page of hugetlbfs counts once at its own size, a transparent one as
//! the small pages it holds.

use std::collections::BTreeMap;

/// Bytes per node of the mappings that are no file: heap, stacks, anonymous memory.
///
/// Pages of files are left out: they belong to the process that touched them first.
pub fn own_bytes(text: &str) -> BTreeMap<usize, u64> {
    let mut nodes = BTreeMap::new();
    for line in text.lines() {
        let words = || line.split_ascii_whitespace().skip(2);
        if words().any(|word| word.starts_with("file=")) {
            continue;
        }
        let value = |word: &str, name: &str| word.strip_prefix(name)?.parse::<u64>().ok();
        // Kernels before 4.0 do not print the size. Only shares are made of these sums, so any size will do.
        let page_kib = words()
            .find_map(|word| value(word, "kernelpagesize_kB="))
            .unwrap_or(4);
        for word in words() {
            let Some((node, pages)) = word.split_once('=') else {
                continue;
            };
            if let (Some(node), Ok(pages)) = (value(node, "N"), pages.parse::<u64>())
                && let Ok(node) = usize::try_from(node)
            {
                let bytes: &mut u64 = nodes.entry(node).or_default();
                *bytes = bytes.saturating_add(pages.saturating_mul(page_kib).saturating_mul(1024));
            }
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn own_memory_is_counted_by_node_and_files_are_not() {
        let text = "5637d6d4b000 default file=/usr/bin/cat mapped=5 N0=5 kernelpagesize_kB=4\n\
                    5637fe0b6000 default heap anon=4 dirty=4 active=0 N0=3 N1=1 kernelpagesize_kB=4\n\
                    7f0000000000 bind:1 anon=2 dirty=2 N1=2 kernelpagesize_kB=2048\n\
                    7ffe00000000 default stack anon=1 dirty=1 N0=1\n\
                    ffff00000000 default\n";
        let found = own_bytes(text);
        assert_eq!(found[&0], 16 << 10);
        assert_eq!(found[&1], (4 << 10) + (4 << 20));
        assert_eq!(found.len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(
            text in "(7f00 default |N[0-9]{1,21}=[0-9]{1,21} |kernelpagesize_kB=[0-9]{1,21} |file=|\n|.){0,30}"
        ) {
            own_bytes(&text);
        }
    }
}
