//! What `cargo xtask`, its `docs` and the tests share is built once: a dependency with other features is another build, and so is all that uses it.

use std::collections::BTreeSet;

use xtask::tree::Tree;

use crate::{none_of, printed};

/// A line per package in the graph with these arguments: name, version, features.
fn packages(tree: &Tree, arguments: &[&str]) -> BTreeSet<String> {
    let format = ["--prefix", "none", "--format", "{p} with {f}"];
    let text = printed(
        tree.cargo()
            .args(["tree", "--locked"])
            .args(format)
            .args(arguments),
    );
    // The mark of a package whose dependencies were shown before.
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    lines.map(str::to_owned).collect()
}

#[test]
fn xtask_is_built_with_the_features_that_the_tests_have() {
    let tree = Tree::ours();
    let tests = packages(&tree, &["--workspace", "--edges", "normal,build,dev"]);
    for selected in [&["xtask"][..], &["xtask", "rungwise"]] {
        let selected = selected.iter().flat_map(|name| ["--package", name]);
        let arguments: Vec<&str> = selected.chain(["--edges", "normal,build"]).collect();
        let programs = packages(&tree, &arguments);
        assert!(programs.len() > 50, "{programs:?}");
        let offenders: Vec<String> = programs.difference(&tests).cloned().collect();
        none_of(
            &offenders,
            "packages whose version or features differ from those of the tests; add the features to xtask/Cargo.toml",
        );
    }
}
