//! Where logs, dumps, recordings and profiles are read from: files, packed or not, members of archives, folders, standard input.
//!
//! How something is packed is seen by its first bytes, never by its name. Text is given in pieces; a packed file that is
//! cut or damaged gives what there is, and says what became of the rest.

mod utf16;
mod zip;

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::bufread::MultiGzDecoder;
use rungwise_host::files;

use utf16::Utf16;
use zip::Member;

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// A file, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Stdin,
    File(PathBuf),
    Archive(PathBuf, Member),
}

/// The text of a part.
pub(crate) struct Text {
    reader: Box<dyn Read>,
    /// `gzip`, `zip`, `UTF-16`.
    pub(crate) packed: Option<&'static str>,
}

/// A line of a file that is of another type, as a message quotes it.
pub(crate) fn quoted(line: &str) -> String {
    /// As much of a line as a message quotes.
    const SHOWN: usize = 80;
    /// Of text in an unknown encoding some characters are lost; of other data most are.
    const LOST: usize = 4;
    if line.starts_with(r#"{"rungwise_capture""#) {
        return "a capture, which `rungwise check FILE` judges".to_owned();
    }
    let shown: String = line.chars().take(SHOWN).collect();
    let odd = |c: &char| *c == char::REPLACEMENT_CHARACTER || c.is_control() && *c != '\t';
    if shown.chars().filter(odd).count() * LOST > shown.chars().count() {
        return "binary data".to_owned();
    }
    format!("'{shown}'")
}

/// What a name on the command line stands for: `-` for standard input, a folder for the files in it, an archive for its
/// members, and a file for itself.
pub(crate) fn parts(name: &Path) -> anyhow::Result<Vec<Part>> {
    let shown = name.display().to_string();
    if shown == "-" {
        return Ok(vec![Part {
            name: "standard input".to_owned(),
            place: Place::Stdin,
        }]);
    }
    if let Some(why) = files::why_missing(name) {
        anyhow::bail!("cannot read {shown}: {why}");
    }
    if files::is_folder(name) {
        let names = files::list(name).with_context(|| format!("cannot list the folder {shown}"))?;
        let mut parts = Vec::new();
        for name in names.iter().map(|inner| name.join(inner)) {
            // A pipe in it would wait for a writer; a link may lead to a log.
            if !files::is_folder(&name) && files::leads_to_plain(&name) {
                parts.extend(of_file(name)?);
            }
        }
        return Ok(parts);
    }
    of_file(name.to_owned())
}

fn of_file(path: PathBuf) -> anyhow::Result<Vec<Part>> {
    let name = path.display().to_string();
    // A pipe is read once, so nothing can be tried first.
    if !files::leads_to_plain(&path) || !starts(&path, zip::MAGIC)? {
        let place = Place::File(path);
        return Ok(vec![Part { name, place }]);
    }
    let members = files::open(&path)
        .map_err(anyhow::Error::new)
        .and_then(|mut file| Ok(zip::members(&mut file)?))
        .with_context(|| format!("cannot read the archive {name}"))?;
    let part = |member: Member| Part {
        name: format!("{name}/{}", member.name),
        place: Place::Archive(path.clone(), member),
    };
    Ok(members.into_iter().map(part).collect())
}

fn starts(path: &Path, magic: &[u8]) -> anyhow::Result<bool> {
    Ok(files::read_at_most(path, magic.len() as u64)? == magic)
}

impl Part {
    /// It can be read twice.
    pub(crate) fn rests(&self) -> bool {
        match &self.place {
            Place::Stdin => false,
            Place::File(path) | Place::Archive(path, _) => files::leads_to_plain(path),
        }
    }

    /// Opens it from its beginning.
    pub(crate) fn open(&self) -> anyhow::Result<Text> {
        match &self.place {
            Place::Stdin => unpacked(Box::new(BufReader::with_capacity(
                PIECE,
                io::stdin().lock(),
            ))),
            Place::File(path) => unpacked(Box::new(BufReader::with_capacity(
                PIECE,
                files::open(path)?,
            ))),
            Place::Archive(path, member) => zip::open(files::open(path)?, member)
                .map_err(anyhow::Error::new)
                .and_then(of_member),
        }
        .with_context(|| format!("cannot read {}", self.name))
    }
}

const GZIP: &[u8] = &[0x1f, 0x8b];

/// Ways of packing that are distinguished from text and not read, with the program that unpacks them.
const OTHERS: [(&[u8], &str); 4] = [
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (zip::MAGIC, "funzip"),
];

/// Whether these first bytes are those of something packed.
pub(crate) fn is_packed(first: &[u8]) -> bool {
    first.starts_with(GZIP)
        || utf16::order(first).is_some()
        || OTHERS.iter().any(|(magic, _)| first.starts_with(magic))
}

fn unpacked(mut reader: Box<dyn BufRead>) -> anyhow::Result<Text> {
    let first = reader.fill_buf()?;
    if first.starts_with(GZIP) {
        return Ok(Text {
            reader: Box::new(MultiGzDecoder::new(reader)),
            packed: Some("gzip"),
        });
    }
    if let Some(order) = utf16::order(first) {
        return Ok(Text {
            reader: Box::new(Utf16::new(reader, order)),
            packed: Some("UTF-16"),
        });
    }
    if let Some((_, program)) = OTHERS.iter().find(|(magic, _)| first.starts_with(magic)) {
        anyhow::bail!(
            "unsupported compression; unpack it with {program} and pass the text, as a file or as -"
        );
    }
    Ok(Text {
        reader: Box::new(reader),
        packed: None,
    })
}

/// The text of a member, which may be packed once more, as rotated logs are.
fn of_member(member: Box<dyn Read>) -> anyhow::Result<Text> {
    let mut reader = BufReader::with_capacity(PIECE, member);
    if let Err(error) = reader.fill_buf() {
        // Reported by who reads it: there is nothing of it, and other members are whole.
        return Ok(Text {
            reader: Box::new(Broken(Some(error))),
            packed: Some("zip"),
        });
    }
    let text = unpacked(Box::new(reader))?;
    Ok(Text {
        packed: text.packed.or(Some("zip")),
        ..text
    })
}

/// A stream whose first read has failed.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

impl Text {
    /// Gives the text in pieces until `each` says that it is enough. Gives why the rest of a packed file cannot be read; a
    /// failed read of the file itself is an error.
    pub(crate) fn each(
        &mut self,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<Option<String>> {
        let mut piece = vec![0; PIECE];
        loop {
            match self.reader.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    if !each(&piece[..count]) {
                        return Ok(None);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.broken(error).map(Some),
            }
        }
    }

    fn broken(&self, error: io::Error) -> io::Result<String> {
        let Some(packed) = self.packed else {
            return Err(error);
        };
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(format!("the {packed} stream is truncated")),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                Ok(format!("the {packed} stream is damaged: {error}"))
            }
            _ => Err(error),
        }
    }
}
