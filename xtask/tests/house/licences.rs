//! Licences of dependencies: each must be one that a program under Apache-2.0 may be linked with.
//!
//! Advisories are not checked here: their list is no package of a registry, and a test must run without other hosts. `cargo audit` or `cargo deny check
//! advisories` on a machine that reaches it does that.

use xtask::tree::Tree;

use crate::{none_of, printed};

/// Identifiers of SPDX that need no more than their notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an expression of SPDX can be met with allowed licences: of alternatives one, of a conjunction all. `/` is the older form of OR.
fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace('/', " OR ");
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = split_outside(&plain, " AND ");
    if all.len() > 1 {
        return all.iter().all(|part| is_allowed(part));
    }
    let inner = plain
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'));
    if let Some(inner) = inner {
        return is_allowed(inner);
    }
    split_outside(&plain, " OR ")
        .iter()
        .any(|one| ALLOWED.contains(&one.trim()))
}

/// Parts between `between` that stand outside parentheses.
fn split_outside<'t>(text: &'t str, between: &str) -> Vec<&'t str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 && at >= from && text[at..].starts_with(between) {
            parts.push(&text[from..at]);
            from = at + between.len();
        }
    }
    parts.push(&text[from..]);
    parts
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "Unlicense/MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
    ] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR GPL-3.0) AND AGPL-3.0",
    ] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn every_dependency_may_be_linked_with_apache_2() {
    let tree = Tree::ours();
    let mut command = tree.cargo();
    command
        .args(["metadata", "--format-version=1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let metadata: serde_json::Value = printed(&mut command).parse().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{} packages", packages.len());
    let offenders: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_allowed))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    none_of(
        &offenders,
        "licences that this project may not be linked with, or that are not known",
    );
}
