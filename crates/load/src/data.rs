//! Tables of values for placeholders: CSV files whose first line names the columns.

use crate::values::nearest;
use crate::workloads::http::lists::jmx::Data;

/// All tables of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    tables: Vec<Table>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    file: String,
    columns: Vec<String>,
    /// The rows one after the other.
    bytes: Vec<u8>,
    /// Where each cell ends.
    ends: Vec<usize>,
}

impl Tables {
    /// Reads files, given by name and content.
    pub(super) fn parse(files: &[(&str, Vec<u8>)]) -> Result<Self, String> {
        let mut all = Self::default();
        for (file, content) in files {
            let table = Table::parse(file, content)?;
            for column in &table.columns {
                if let Some(other) = all
                    .tables
                    .iter()
                    .find(|table| table.columns.contains(column))
                {
                    return Err(format!(
                        "column '{column}' is in {} and in {file}; rename one",
                        other.file
                    ));
                }
            }
            all.tables.push(table);
        }
        Ok(all)
    }

    /// The data sets of a test plan. Values beyond the last column of a row are left out, as JMeter does.
    pub(super) fn of_plan(sets: &[Data]) -> Result<Self, String> {
        let tables = sets.iter().map(Table::of_plan);
        Ok(Self {
            tables: tables.collect::<Result<_, _>>()?,
        })
    }

    /// How many tables.
    pub(super) fn number(&self) -> usize {
        self.tables.len()
    }

    /// Rows of a table, one at least.
    pub(super) fn rows(&self, table: usize) -> usize {
        let Table { ends, columns, .. } = &self.tables[table];
        ends.len() / columns.len()
    }

    /// The table and the column of this name.
    pub(super) fn find(&self, name: &str) -> Result<(usize, usize), String> {
        if self.tables.is_empty() {
            return Err(format!(
                "'${{csv:{name}}}' has no file; name one with --data FILE.csv (in a scenario: data = [\"FILE.csv\"])"
            ));
        }
        for (at, table) in self.tables.iter().enumerate() {
            if let Some(column) = table.columns.iter().position(|column| column == name) {
                return Ok((at, column));
            }
        }
        let columns: Vec<&str> = self.columns().collect();
        let near = nearest(name, columns.iter().copied());
        let columns = columns.join(", ");
        Err(format!("no column '{name}'{near}; columns: {columns}"))
    }

    fn columns(&self) -> impl Iterator<Item = &str> {
        let tables = self.tables.iter();
        tables.flat_map(|table| table.columns.iter().map(String::as_str))
    }

    #[inline]
    pub(super) fn cell(&self, table: usize, row: usize, column: usize) -> &[u8] {
        let Table {
            bytes,
            ends,
            columns,
            ..
        } = &self.tables[table];
        let at = row * columns.len() + column;
        let begin = if at == 0 { 0 } else { ends[at - 1] };
        &bytes[begin..ends[at]]
    }

    /// Where a value of this column is not one that `fits`: file, line of the table and column.
    pub(super) fn misfit(
        &self,
        (table, column): (usize, usize),
        fits: fn(&[u8]) -> bool,
    ) -> Option<String> {
        let row = (0..self.rows(table)).find(|row| !fits(self.cell(table, *row, column)))?;
        let Table { file, columns, .. } = &self.tables[table];
        Some(format!(
            "row {} of {file}, column '{}'",
            row + 1,
            columns[column]
        ))
    }
}

/// The values of the first line.
pub(super) fn first_line(content: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(without_mark(content));
    let mut row = csv::ByteRecord::new();
    match reader.read_byte_record(&mut row) {
        Ok(true) => {
            let cells = row.iter().map(String::from_utf8_lossy);
            Ok(cells.map(|cell| cell.trim().to_owned()).collect())
        }
        Ok(false) => Err("it is empty; its first line must name the variables".to_owned()),
        Err(error) => Err(format!("cannot read its first line as CSV: {error}")),
    }
}

/// Spreadsheets begin a file with a byte order mark.
fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content)
}

impl Table {
    fn of_plan(data: &Data) -> Result<Self, String> {
        let Data { file, columns, .. } = data;
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(data.delimiter)
            .quoting(data.is_quoted)
            .has_headers(data.has_header)
            .flexible(true)
            .from_reader(without_mark(&data.content));
        let mut table = Self {
            file: file.clone(),
            columns: columns.clone(),
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        let mut row = csv::ByteRecord::new();
        loop {
            let more = reader.read_byte_record(&mut row);
            if !more.map_err(|error| format!("cannot read {file} as CSV: {error}"))? {
                break;
            }
            if row.len() < columns.len() {
                let line = row.position().map_or(0, csv::Position::line);
                return Err(format!(
                    "line {line} of {file} has {} values for {} variables; complete it",
                    row.len(),
                    columns.len()
                ));
            }
            for cell in row.iter().take(columns.len()) {
                table.bytes.extend_from_slice(cell);
                table.ends.push(table.bytes.len());
            }
        }
        if table.ends.is_empty() {
            return Err(format!("{file} has no rows; a data set needs one at least"));
        }
        Ok(table)
    }

    fn parse(file: &str, content: &[u8]) -> Result<Self, String> {
        let content = without_mark(content);
        let mut reader = csv::ReaderBuilder::new().from_reader(content);
        let wrong = |error: csv::Error| match error.kind() {
            csv::ErrorKind::UnequalLengths {
                pos,
                expected_len,
                len,
            } => {
                let line = pos.as_ref().map_or(0, csv::Position::line);
                format!(
                    "line {line} of {file} has {len} values; its first line names {expected_len} columns"
                )
            }
            _ => format!("cannot read {file} as CSV: {error}"),
        };
        let header = reader.byte_headers().map_err(wrong)?;
        let names = header.iter().map(|name| String::from_utf8_lossy(name));
        let columns: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
        for (at, name) in columns.iter().enumerate() {
            if name.is_empty() || columns[..at].contains(name) {
                return Err(format!(
                    "the first line of {file} must name each column once; column {} is '{name}'",
                    at + 1
                ));
            }
        }
        let mut table = Self {
            file: file.to_owned(),
            columns,
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        let mut row = csv::ByteRecord::new();
        while reader.read_byte_record(&mut row).map_err(wrong)? {
            for cell in &row {
                table.bytes.extend_from_slice(cell);
                table.ends.push(table.bytes.len());
            }
        }
        if table.ends.is_empty() {
            return Err(format!(
                "{file} has no rows; its first line names the columns, and at least one row of values follows"
            ));
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Tables, String> {
        Tables::parse(&[("u.csv", text.as_bytes().to_vec())])
    }

    #[test]
    fn cells_are_found_by_row_and_column() {
        let tables = parsed("\u{feff}name, id\nann,1\n\"a,\n\"\"b\"\"\",\n").unwrap();
        assert_eq!((tables.number(), tables.rows(0)), (1, 2));
        let (table, column) = tables.find("id").unwrap();
        assert_eq!(tables.cell(table, 0, column), b"1");
        assert_eq!(tables.cell(table, 1, column), b"");
        assert_eq!(tables.cell(table, 1, 0), b"a,\n\"b\"");
        let odd = tables.misfit((0, 0), |cell| !cell.contains(&b'\n'));
        assert_eq!(odd.unwrap(), "row 2 of u.csv, column 'name'");
    }

    #[test]
    fn a_file_that_is_no_table_is_refused_with_its_line() {
        for (text, word) in [
            ("", "no rows"),
            ("a,b\n", "no rows"),
            ("a,a\n1,2\n", "each column once"),
            ("a,\n1,2\n", "each column once"),
            ("a,b\n1,2\n1\n", "line 3 of u.csv has 1 values"),
        ] {
            let why = parsed(text).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
        let two = [("a.csv", b"x\n1\n".to_vec()), ("b.csv", b"x\n1\n".to_vec())];
        assert!(Tables::parse(&two).unwrap_err().contains("rename one"));
        assert!(Tables::default().find("x").unwrap_err().contains("--data"));
    }
}
