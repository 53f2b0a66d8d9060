//! Which half of a pair runs first, and in which order things are measured.
//!
//! Random order protects against a period in the foreign load, balance against a trend: in every block of
//! four pairs two start with A and two with B (permuted blocks; Box, Hunter & Hunter, "Statistics for
//! Experimenters", 2nd ed. (2005), ch. 3-4). The schedule of fewer pairs is the beginning of that of more,
//! so that a decision point that needs more pairs continues the stored schedule.

use std::collections::VecDeque;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The six ways to put two of each into a block of four.
const BLOCKS: [[bool; 4]; 6] = [
    [true, true, false, false],
    [true, false, true, false],
    [true, false, false, true],
    [false, true, true, false],
    [false, true, false, true],
    [false, false, true, true],
];

/// For each of `pairs` pairs that all count, whether B runs before A.
pub fn pair_orders(pairs: usize, seed: u64) -> Vec<bool> {
    let mut orders = Orders::new(seed);
    (0..pairs).map(|_| orders.draw()).collect()
}

/// Orders one by one, for pairs that may turn out not to count. The same seed and the same fates give the same orders
/// everywhere.
#[derive(Debug)]
pub struct Orders {
    rng: Pcg64Mcg,
    /// What the present block still lacks.
    block: VecDeque<bool>,
}

impl Orders {
    /// Nothing drawn yet.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(seed),
            block: VecDeque::new(),
        }
    }

    /// Whether B runs before A in the next pair.
    pub fn draw(&mut self) -> bool {
        if self.block.is_empty() {
            // A multiply and shift prefers some block by less than 1 in 7e8; written out because a library's
            // choice may change between its versions and stored seeds may not.
            let block = (u64::from(self.rng.next_u32()) * BLOCKS.len() as u64) >> 32;
            self.block.extend(BLOCKS[block as usize]);
        }
        self.block.pop_front().expect("a block was just filled")
    }

    /// The pair drawn last does not count: its order comes again before the next block begins, behind what this one still
    /// holds, so that where no pair counts the orders go round and stay balanced too.
    pub fn again(&mut self, b_first: bool) {
        self.block.push_back(b_first);
    }
}

/// The numbers below `count` in random order (Fisher and Yates, by Durstenfeld, CACM 7 (1964), algorithm 235).
pub fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // A multiply and shift, as above.
        let other = (u64::from(rng.next_u32()) * (last as u64 + 1)) >> 32;
        order.swap(last, other as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stored_seed_gives_the_stored_order() {
        let written: String = pair_orders(16, 1)
            .iter()
            .map(|b| if *b { 'B' } else { 'A' })
            .collect();
        assert_eq!(written, "AABBBABAABABBABA");
    }

    #[test]
    fn every_order_of_three_is_drawn_about_as_often() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..600 {
            *counts.entry(shuffled(3, seed)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|count| (60..=140).contains(count)),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn every_block_of_four_is_balanced(seed: u64, pairs in 0..40_usize) {
            let orders = pair_orders(pairs, seed);
            prop_assert_eq!(orders.len(), pairs);
            for block in orders.chunks_exact(4) {
                prop_assert_eq!(block.iter().filter(|b| **b).count(), 2);
            }
        }

        #[test]
        fn pairs_that_count_are_balanced_whichever_do_not(seed: u64, fates in prop::collection::vec(any::<bool>(), 0..200)) {
            let mut orders = Orders::new(seed);
            let mut counted = Vec::new();
            for counts in fates {
                let b_first = orders.draw();
                if counts {
                    counted.push(b_first);
                } else {
                    orders.again(b_first);
                }
            }
            for block in counted.chunks_exact(4) {
                prop_assert_eq!(block.iter().filter(|b| **b).count(), 2);
            }
        }

        #[test]
        fn pairs_of_which_none_counts_are_balanced_too(seed: u64, rounds in 1..10_usize) {
            let mut orders = Orders::new(seed);
            let mut b_first = 0;
            for _ in 0..4 * rounds {
                let order = orders.draw();
                b_first += usize::from(order);
                orders.again(order);
            }
            prop_assert_eq!(b_first, 2 * rounds);
        }

        #[test]
        fn a_shuffle_keeps_every_number(seed: u64, count in 0..80_usize) {
            let mut order = shuffled(count, seed);
            prop_assert_eq!(&order, &shuffled(count, seed));
            order.sort_unstable();
            prop_assert_eq!(order, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn more_pairs_continue_the_schedule(seed: u64, pairs in 0..40_usize) {
            prop_assert_eq!(&pair_orders(40, seed)[..pairs], &pair_orders(pairs, seed)[..]);
        }
    }
}
