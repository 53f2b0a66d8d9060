//! Jars of real libraries that planted programs use.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::packages;

/// The jars in `folder`; what is missing there is fetched by Maven, which keeps a copy for the next run.
pub fn fetch(coordinates: &[String], folder: &Path) -> Result<Vec<PathBuf>> {
    coordinates
        .iter()
        .map(|one| {
            let jar = folder.join(file_name(one)?);
            if !jar.is_file() {
                copy(one, folder)?;
            }
            Ok(jar)
        })
        .collect()
}

fn copy(one: &str, folder: &Path) -> Result<()> {
    let mvn = packages::find("mvn").context("no mvn; `cargo xtask test` installs it")?;
    let output = Command::new(mvn)
        .args(["-q", "-B", "dependency:copy"])
        .arg(format!("-Dartifact={one}"))
        .arg(format!("-DoutputDirectory={}", folder.display()))
        .output()
        .context("cannot run mvn")?;
    if !output.status.success() {
        bail!(
            "mvn cannot fetch {one}: {}",
            String::from_utf8_lossy(&output.stdout).trim()
        );
    }
    Ok(())
}

/// As Maven names the file: `HikariCP-4.0.3.jar` of `com.zaxxer:HikariCP:4.0.3`.
fn file_name(one: &str) -> Result<String> {
    match one.split(':').collect::<Vec<_>>()[..] {
        [_, artifact, version] => Ok(format!("{artifact}-{version}.jar")),
        _ => bail!("{one} is not group:artifact:version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jar_has_the_name_that_maven_gives_it() {
        let name = file_name("com.zaxxer:HikariCP:4.0.3").unwrap();
        assert_eq!(name, "HikariCP-4.0.3.jar");
        assert!(file_name("HikariCP").is_err());
    }

    #[test]
    fn nothing_is_fetched_where_nothing_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let jar = folder.path().join("a-1.jar");
        std::fs::write(&jar, "").unwrap();
        assert_eq!(fetch(&["g:a:1".to_owned()], folder.path()).unwrap(), [jar]);
        assert!(fetch(&[], folder.path()).unwrap().is_empty());
    }
}
