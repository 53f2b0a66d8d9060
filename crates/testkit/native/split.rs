//! A program whose CPU time is known: 70, 20 and 10 % in three functions of a thread. Ends when its input does.

use std::hint::black_box;
use std::io::Read as _;

mod shop {
    use std::hint::black_box;

    // One loop for all three: three copies of it differ in speed by their alignment, on some CPUs by three quarters.
    #[inline(never)]
    fn sum(n: u64) -> u64 {
        let mut sum = 0_u64;
        for i in 0..n {
            sum = black_box(sum.wrapping_add(i));
        }
        sum
    }

    #[inline(never)]
    pub fn seventy(n: u64) -> u64 {
        black_box(sum(7 * n))
    }

    #[inline(never)]
    pub fn twenty(n: u64) -> u64 {
        black_box(sum(2 * n))
    }

    pub trait Cart {
        fn ten(&self, n: u64) -> u64;
    }

    pub struct Basket;

    impl Cart for Basket {
        #[inline(never)]
        fn ten(&self, n: u64) -> u64 {
            black_box(sum(n))
        }
    }
}

fn main() {
    let worker = std::thread::Builder::new().name("pool-1".to_owned());
    let work = || {
        use shop::Cart as _;
        let mut state = 7_u64;
        loop {
            // Rounds of varying length, so that they are never in step with a clock.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let n = 2000 + (state >> 50);
            black_box(shop::seventy(n) + shop::twenty(n) + shop::Basket.ten(n));
        }
    };
    worker.spawn(work).expect("a thread starts");
    println!("ready");
    let mut end = Vec::new();
    std::io::stdin().read_to_end(&mut end).expect("the input is a pipe");
}
