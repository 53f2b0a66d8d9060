//! Follows the stack of a thread from its registers and a copy of the stack, from the innermost function to the first.
//!
//! Each step uses the unwind table of the file that the code is in; code without a table (compiled at run time, or built without) is taken to keep
//! frame pointers. A step is believed only if it leads up the stack and to code. Where it ends early, the frames that the kernel found by frame
//! pointers go on from the last function that both have.
//!
//! `framehop` does the same, but knows two registers alone, does not say which of its steps were guesses, and evaluates expressions of damaged tables
//! without end; so the steps are here, and `gimli` reads the tables.

mod machine;
mod prologue;
mod tables;

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{EndianSlice, Evaluation, EvaluationResult, LittleEndian, Location, Value};

use self::machine::{COUNT, FP, PC, Registers, SP, plain};
pub(super) use self::machine::{SAMPLED, registers};
pub(super) use self::tables::Tables;
use self::tables::{Frame, Register, Rule};
use super::memory::{Memory, Place};

/// Bytes of the stack that are copied with each sample. A record has at most 64 KiB.
pub(super) const COPIED: u32 = 32 << 10;
/// Bytes of tables in memory; those of a browser have 50 MB.
const MOST_BYTES: usize = 512 << 20;
/// Rules that are kept: some 100 bytes each.
const MOST_RULES: usize = 1 << 16;
/// Functions in a stack: a copy has at most half as many as words.
const DEEPEST: usize = COPIED as usize / 16;
/// Steps of an expression; one that branches back could have no end.
const MOST_OPERATIONS: u32 = 256;
/// How far back a function is looked for that the frame pointers have too.
const LOOK_BACK: usize = 16;

/// What a thread was when it was sampled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) registers: Registers,
    /// From the stack pointer on.
    pub(super) stack: Box<[u8]>,
    /// The stack may go on behind it.
    pub(super) is_cut: bool,
}

impl User {
    /// Of a thread of which only the places in code and stack are known.
    pub(super) fn blocked(at: u64, stack_pointer: u64, stack: Vec<u8>) -> Self {
        let mut registers = [None; COUNT];
        registers[PC] = Some(at);
        registers[SP] = Some(stack_pointer);
        Self {
            registers,
            is_cut: stack.len() == COPIED as usize,
            stack: stack.into(),
        }
    }
}

/// How a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum End {
    /// Where its thread began, as the tables say.
    Whole,
    /// Frame pointers alone lead there.
    ByPointers,
    /// The copy of the stack was too short.
    Short,
    /// A step led nowhere.
    Lost,
    /// A step needs a register that was not to be had: the thread was blocked already.
    Unread,
}

/// Reads what the unwinder asks for.
pub(super) struct Reader<'a> {
    /// The tables of a file by its number.
    pub(super) tables: &'a dyn Fn(u32) -> Option<Tables>,
    /// Reads code of the process from an address on, for threads whose frame pointer is unknown; whether it could.
    pub(super) code: &'a dyn Fn(u64, &mut [u8]) -> bool,
}

impl Reader<'_> {
    /// Where the function begins that is at an address, and code from there on: at most that before the address.
    fn begin_of(&self, at: u64, rule: &Rule) -> (u64, Vec<u8>) {
        let begin = at.wrapping_sub(rule.from_begin);
        let length = usize::try_from(rule.from_begin).unwrap_or(usize::MAX);
        let mut code = vec![0; length.min(prologue::READ)];
        if !(self.code)(begin, &mut code) {
            code.clear();
        }
        (begin, code)
    }

    fn is_behind_call(&self, returns_to: u64, begin: u64) -> bool {
        let mut before = [0; 7];
        let read = |at: u64| {
            let mut bytes = [0; 16];
            (self.code)(at, &mut bytes).then_some(bytes)
        };
        (self.code)(returns_to.wrapping_sub(7), &mut before)
            && prologue::is_behind_call(before, returns_to, begin, read)
    }
}

/// Unwinds stacks.
#[derive(Debug, Default)]
pub(super) struct Unwinder {
    /// By number; nothing for those without.
    files: HashMap<u32, Option<Tables>>,
    size: usize,
    /// By file and offset.
    rules: HashMap<(u32, u64), Option<Arc<Rule>>>,
    context: Box<gimli::UnwindContext<usize>>,
    /// Files whose tables found no room.
    pub(super) left_out: u64,
}

impl Unwinder {
    /// The addresses of a stack, leaf first; callers are where they go on.
    pub(super) fn follow(
        &mut self,
        process: u32,
        user: &User,
        memory: &Memory,
        chain: &[u64],
        reader: &Reader<'_>,
    ) -> (Vec<u64>, End) {
        let mut frames = Vec::new();
        let end = self.walk(process, user, memory, reader, &mut frames);
        let end = if end != End::Whole && go_on(&mut frames, chain, process, memory) {
            End::ByPointers
        } else {
            end
        };
        (frames, end)
    }

    fn walk(
        &mut self,
        process: u32,
        user: &User,
        memory: &Memory,
        reader: &Reader<'_>,
        frames: &mut Vec<u64>,
    ) -> End {
        let mut registers = user.registers;
        let Some(mut at) = registers[PC] else {
            return End::Lost;
        };
        let stack = Stack {
            begin: registers[SP].unwrap_or(u64::MAX),
            bytes: &user.stack,
            is_cut: user.is_cut,
        };
        frames.push(at);
        // A caller goes on behind its call, which may be the last of its function.
        let (mut is_caller, mut is_guess) = (false, false);
        while frames.len() < DEEPEST {
            let place = memory.place(process, at - u64::from(is_caller));
            let rule = match place {
                Place::File { file, offset } => self.rule(file, offset, reader),
                _ => None,
            };
            let guessed = rule
                .as_deref()
                .filter(|rule| registers[FP].is_none() && prologue::is_needed(rule))
                .map(|rule| reader.begin_of(at - u64::from(is_caller), rule));
            if let (Some(rule), Some((_, code))) = (&rule, &guessed) {
                registers[FP] = prologue::frame_pointer(rule, code, &registers);
            }
            let step = match &rule {
                Some(rule) => by_table(rule, &registers, &stack),
                None => by_pointer(&registers, &stack),
            };
            let next = match step {
                Ok(Some(next)) => next,
                Ok(None) if rule.is_some() && !is_guess => return End::Whole,
                Ok(None) => return End::ByPointers,
                Err(end) => return end,
            };
            let is_signal = rule.is_some_and(|rule| rule.is_signal);
            let Some(to) = next[PC].map(plain).filter(|to| *to > 0) else {
                return End::Lost;
            };
            // The innermost function may have no frame, and a handler of signals a stack of its own.
            let leads_up = next[SP] > registers[SP]
                || !is_caller && next[SP] == registers[SP] && to != at
                || is_signal;
            if !leads_up || !memory.is_code(process, to - u64::from(!is_signal)) {
                return End::Lost;
            }
            if let Some((begin, _)) = guessed
                && !reader.is_behind_call(to, begin)
            {
                return End::Lost;
            }
            is_guess |= guessed.is_some();
            registers = next;
            at = to;
            is_caller = !is_signal;
            frames.push(at);
        }
        End::Short
    }

    fn rule(&mut self, file: u32, offset: u64, reader: &Reader<'_>) -> Option<Arc<Rule>> {
        if let Some(rule) = self.rules.get(&(file, offset)) {
            return rule.clone();
        }
        if !self.files.contains_key(&file) {
            let mut tables = (reader.tables)(file);
            let size = tables.as_ref().map_or(0, Tables::size);
            if self.size + size > MOST_BYTES {
                tables = None;
                self.left_out += 1;
            } else {
                self.size += size;
            }
            self.files.insert(file, tables);
        }
        let tables = self.files.get(&file).and_then(Option::as_ref);
        let rule = tables.and_then(|tables| tables.rule(offset, &mut self.context));
        let rule = rule.map(Arc::new);
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        self.rules.insert((file, offset), rule.clone());
        rule
    }
}

/// Appends what the kernel found behind the last function that both have. Returns whether there was more.
fn go_on(frames: &mut Vec<u64>, chain: &[u64], process: u32, memory: &Memory) -> bool {
    let from = frames.len().saturating_sub(LOOK_BACK);
    for last in (from..frames.len()).rev() {
        let address = frames[last];
        // A function that calls itself is there several times.
        let times = frames[..=last]
            .iter()
            .filter(|frame| **frame == address)
            .count();
        let mut same = chain.iter().enumerate().filter(|(_, one)| **one == address);
        let Some((at, _)) = same.nth(times - 1) else {
            continue;
        };
        let rest = chain[at + 1..]
            .iter()
            .take_while(|address| memory.is_code(process, address.saturating_sub(1)));
        let rest: Vec<u64> = rest.copied().collect();
        if rest.len() < frames.len() - last {
            return false;
        }
        frames.truncate(last + 1);
        frames.extend(rest);
        return true;
    }
    false
}

/// The copy of a stack.
struct Stack<'a> {
    begin: u64,
    bytes: &'a [u8],
    is_cut: bool,
}

impl Stack<'_> {
    fn word(&self, address: u64) -> Result<u64, End> {
        let at = address.checked_sub(self.begin).ok_or(End::Lost)?;
        let bytes = usize::try_from(at)
            .ok()
            .and_then(|at| self.bytes.get(at..)?.first_chunk());
        match bytes {
            Some(bytes) => Ok(u64::from_ne_bytes(*bytes)),
            // Far behind it is no stack but a wrong address.
            None if self.is_cut && at < LONGEST_STACK => Err(End::Short),
            None => Err(End::Lost),
        }
    }
}

/// Stacks of threads have 8 MiB, unless set otherwise.
const LONGEST_STACK: u64 = 64 << 20;

/// The registers of the caller by the rules of a table; nothing if there is no caller.
fn by_table(
    rule: &Rule,
    registers: &Registers,
    stack: &Stack<'_>,
) -> Result<Option<Registers>, End> {
    let frame = match &rule.frame {
        Frame::Register(number, offset) => registers
            .get(*number)
            .copied()
            .flatten()
            .and_then(|value| value.checked_add_signed(*offset))
            .ok_or(End::Lost)?,
        Frame::Expression(code) => evaluate(code, rule, None, registers, stack)?,
    };
    let mut next = *registers;
    next[SP] = Some(frame);
    for (number, register) in &rule.registers {
        let value =
            match register {
                Register::Unknown if *number == rule.returns_by => return Ok(None),
                Register::Unknown => Err(End::Lost),
                Register::Same => registers[*number].ok_or(End::Lost),
                Register::Saved(offset) => frame
                    .checked_add_signed(*offset)
                    .ok_or(End::Lost)
                    .and_then(|at| match stack.word(at) {
                        // What is below the stack pointer was restored already: the table of an epilogue may not say so.
                        Err(_) if at < stack.begin => registers[*number].ok_or(End::Lost),
                        word => word,
                    }),
                Register::Frame(offset) => frame.checked_add_signed(*offset).ok_or(End::Lost),
                Register::Other(other) => registers.get(*other).copied().flatten().ok_or(End::Lost),
                Register::SavedAt(code) => evaluate(code, rule, Some(frame), registers, stack)
                    .and_then(|address| stack.word(address)),
                Register::Value(code) => evaluate(code, rule, Some(frame), registers, stack),
                Register::Constant(value) => Ok(*value),
            };
        if *number == rule.returns_by {
            let address = value?;
            // Where a thread began, some libraries have a zero.
            if address == 0 {
                return Ok(None);
            }
            next[*number] = Some(address);
        } else {
            next[*number] = value.ok();
        }
    }
    next[PC] = next.get(rule.returns_by).copied().flatten();
    Ok(Some(next))
}

/// The registers of the caller of a function that keeps a frame pointer; nothing if it was the first.
fn by_pointer(registers: &Registers, stack: &Stack<'_>) -> Result<Option<Registers>, End> {
    const WORD: u64 = size_of::<u64>() as u64;
    let pointer = registers[FP].ok_or(End::Lost)?;
    if pointer == 0 {
        return Ok(None);
    }
    if pointer % WORD != 0 {
        return Err(End::Lost);
    }
    let next_to = pointer.checked_add(WORD).ok_or(End::Lost)?;
    let (outer, address) = (stack.word(pointer)?, stack.word(next_to)?);
    if address == 0 {
        return Ok(None);
    }
    let mut next: Registers = [None; COUNT];
    next[FP] = Some(outer);
    next[PC] = Some(address);
    next[SP] = next_to.checked_add(WORD);
    Ok(Some(next))
}

/// The value of an expression.
fn evaluate(
    code: &[u8],
    rule: &Rule,
    frame: Option<u64>,
    registers: &Registers,
    stack: &Stack<'_>,
) -> Result<u64, End> {
    let lost = |_| End::Lost;
    let mut evaluation = Evaluation::new(EndianSlice::new(code, LittleEndian), rule.encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    if let Some(frame) = frame {
        evaluation.set_initial_value(frame);
    }
    let mut state = evaluation.evaluate().map_err(lost)?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(usize::from(register.0)).copied().flatten();
                let value = Value::Generic(value.ok_or(End::Lost)?);
                evaluation.resume_with_register(value).map_err(lost)?
            }
            EvaluationResult::RequiresMemory {
                address,
                size: 8,
                space: None,
                ..
            } => {
                let value = Value::Generic(stack.word(address)?);
                evaluation.resume_with_memory(value).map_err(lost)?
            }
            _ => return Err(End::Lost),
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Ok(address),
            _ => Err(End::Lost),
        },
        _ => Err(End::Lost),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rungwise_host::files;

    use super::*;

    const PROCESS: u32 = 7;
    /// Reads nothing.
    const NOTHING: Reader<'static> = Reader {
        tables: &|_| None,
        code: &|_, _| false,
    };

    fn maps() -> String {
        String::from_utf8(files::read("/proc/self/maps".as_ref()).unwrap()).unwrap()
    }

    fn memory() -> Memory {
        let mut memory = Memory::default();
        memory.read(PROCESS, &maps());
        memory
    }

    /// The number and offset of a function of this program.
    fn own_place(memory: &Memory) -> (u32, u64) {
        let address = own_place as fn(&Memory) -> (u32, u64) as usize as u64;
        match memory.place(PROCESS, address) {
            Place::File { file, offset } => (file, offset),
            other => panic!("{other:?}"),
        }
    }

    fn own_program() -> Vec<u8> {
        files::read("/proc/self/exe".as_ref()).unwrap()
    }

    fn user(pc: u64, sp: u64, fp: u64, words: &[u64]) -> User {
        let mut registers = [Some(0); COUNT];
        registers[PC] = Some(pc);
        registers[SP] = Some(sp);
        registers[FP] = Some(fp);
        User {
            registers,
            stack: words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
            is_cut: false,
        }
    }

    #[test]
    fn the_rule_of_the_first_byte_of_a_function_is_that_of_its_call() {
        if SAMPLED == 0 {
            return;
        }
        let memory = memory();
        let tables = Tables::of(&*own_program()).unwrap();
        let (_, offset) = own_place(&memory);
        let rule = tables
            .rule(offset, &mut gimli::UnwindContext::new())
            .unwrap();
        if cfg!(target_arch = "x86_64") {
            assert_eq!(rule.frame, Frame::Register(SP, 8));
            assert_eq!(*rule.registers, [(PC, Register::Saved(-8))]);
        }
        assert!(!rule.is_signal);
    }

    #[test]
    fn code_without_tables_is_followed_by_frame_pointers_to_code_alone() {
        let mut memory = Memory::default();
        memory.read(PROCESS, "1000-9000 rwxp 00000000 00:00 0\n");
        let follow = |user: &User, chain: &[u64]| {
            Unwinder::default().follow(PROCESS, user, &memory, chain, &NOTHING)
        };
        // Two frames at 0x108 and 0x118, and the end.
        let mut words = [0, 0x118, 0x2000, 0, 0x3000];
        let at = user(0x1000, 0x100, 0x108, &words);
        let whole = vec![0x1000, 0x2000, 0x3000];
        assert_eq!(follow(&at, &[]), (whole, End::ByPointers));
        // An address that is no code.
        words[4] = 0x1_0000;
        let at = user(0x1000, 0x100, 0x108, &words);
        assert_eq!(follow(&at, &[]), (vec![0x1000, 0x2000], End::Lost));
        // A pointer that leads down, one that is none, and one that leads around.
        for pointer in [0x80, 0x109, u64::MAX, 7] {
            let at = user(0x1000, 0x100, pointer, &words);
            assert_eq!(follow(&at, &[]), (vec![0x1000], End::Lost), "{pointer:x}");
        }
        let at = user(0x1000, 0x100, 0x108, &[0, 0x108, 0x2000]);
        assert_eq!(follow(&at, &[]), (vec![0x1000, 0x2000], End::Lost));
    }

    #[test]
    fn frame_pointers_go_on_where_the_copy_ends() {
        let mut memory = Memory::default();
        memory.read(PROCESS, "1000-9000 rwxp 00000000 00:00 0\n");
        let mut at = user(0x1000, 0x100, 0x100, &[0x1000, 0x2000]);
        let follow = |user: &User, chain: &[u64]| {
            Unwinder::default().follow(PROCESS, user, &memory, chain, &NOTHING)
        };
        assert_eq!(follow(&at, &[]), (vec![0x1000, 0x2000], End::Lost));
        at.is_cut = true;
        assert_eq!(follow(&at, &[]), (vec![0x1000, 0x2000], End::Short));
        let chain = [0x1000, 0x2000, 0x3000, 0x4000, 0x1_0000];
        let whole = vec![0x1000, 0x2000, 0x3000, 0x4000];
        assert_eq!(follow(&at, &chain), (whole, End::ByPointers));
        // The chain knows no more.
        assert_eq!(follow(&at, &chain[..2]).1, End::Short);
    }

    #[test]
    fn a_function_that_calls_itself_goes_on_at_the_right_call() {
        let mut memory = Memory::default();
        memory.read(PROCESS, "0-100 rwxp 00000000 00:00 0\n");
        let mut frames = vec![9, 5, 5];
        assert!(go_on(&mut frames, &[9, 5, 5, 5, 6], PROCESS, &memory));
        assert_eq!(frames, [9, 5, 5, 5, 6]);
        let mut frames = vec![1, 2];
        assert!(!go_on(&mut frames, &[3, 4], PROCESS, &memory));
    }

    #[test]
    fn an_expression_that_has_no_end_is_given_up() {
        let rule = Rule {
            from_begin: 0,
            frame: Frame::Register(SP, 0),
            registers: Box::default(),
            returns_by: PC,
            is_signal: false,
            encoding: gimli::Encoding {
                format: gimli::Format::Dwarf32,
                version: 4,
                address_size: 8,
            },
        };
        let registers = [Some(0x100); COUNT];
        let stack = Stack {
            begin: 0x100,
            bytes: &7_u64.to_ne_bytes(),
            is_cut: false,
        };
        let value = |code: &[u8]| evaluate(code, &rule, Some(0x100), &registers, &stack);
        // `DW_OP_skip -3`; `DW_OP_deref`; `DW_OP_breg7 8`, `DW_OP_deref`.
        assert_eq!(value(&[0x2f, 0xfd, 0xff]), Err(End::Lost));
        assert_eq!(value(&[0x06]), Ok(7));
        assert_eq!(value(&[0x77, 8, 0x06]), Err(End::Lost));
        assert_eq!(value(&[]), Ok(0x100));
    }

    /// Sections of this program with their addresses: the table, and its index.
    fn sections(program: &[u8]) -> [(&[u8], u64); 2] {
        use object::{Object as _, ObjectSection as _};
        let elf = object::File::parse(program).unwrap();
        [".eh_frame", ".eh_frame_hdr"].map(|name| {
            let section = elf.section_by_name(name).unwrap();
            (section.data().unwrap(), section.address())
        })
    }

    /// Asks for rules all over a file, and takes a step by each.
    fn step_everywhere(tables: &Tables) -> usize {
        let mut context = gimli::UnwindContext::new();
        let registers = [Some(0x7fff_0000_0010); COUNT];
        let stack = Stack {
            begin: 0x7fff_0000_0000,
            bytes: &[3; 4096],
            is_cut: true,
        };
        let offsets = (0..1 << 24).step_by(0x4321).chain([u64::MAX]);
        let rules = offsets.filter_map(|offset| tables.rule(offset, &mut context));
        let mut found = 0;
        for rule in rules {
            let _ = by_table(&rule, &registers, &stack);
            found += 1;
        }
        found
    }

    #[test]
    fn a_program_without_an_index_has_the_same_rules() {
        let program = own_program();
        let [(frames, address), (index, index_address)] = sections(&program);
        let with = Tables::of_sections(frames, address, Some((index, index_address)));
        let without = Tables::of_sections(frames, address, None);
        let found = step_everywhere(&with);
        assert!(found > 20, "{found}");
        assert_eq!(step_everywhere(&without), found);
    }

    #[test]
    fn tables_that_are_cut_or_damaged_anywhere_have_fewer_rules_and_break_nothing() {
        let program = own_program();
        let [(frames, address), (index, index_address)] = sections(&program);
        // A part is enough to be cut and damaged in.
        let frames = &frames[..frames.len().min(64 << 10)];
        for part in 0..64 {
            let cut = |bytes: &'_ [u8]| bytes[..bytes.len() / 64 * part].to_vec();
            for (frames, index) in [
                (cut(frames), Some(index.to_vec())),
                (frames.to_vec(), Some(cut(index))),
                (cut(frames), None),
            ] {
                let index = index.as_deref().map(|index| (index, index_address));
                step_everywhere(&Tables::of_sections(&frames, address, index));
            }
        }
        let mut state = 7_u64;
        for _ in 0..200 {
            let mut damaged = frames.to_vec();
            for _ in 0..64 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = (state >> 33) as usize % damaged.len();
                damaged[at] = state as u8;
            }
            step_everywhere(&Tables::of_sections(
                &damaged,
                address,
                Some((index, index_address)),
            ));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(frames: Vec<u8>, index: Vec<u8>, code: Vec<u8>, address: u64, words: Vec<u64>, value: u64) {
            let tables = Tables::of_sections(&frames, address, Some((&index, address)));
            step_everywhere(&tables);
            let _ = Tables::of(&*frames);
            let mut memory = memory();
            memory.read(PROCESS, "0-ffffffffffffffff rwxp 00000000 00:00 0\n");
            let at = user(address, value, words.first().copied().unwrap_or(value), &words);
            Unwinder::default().follow(PROCESS, &at, &memory, &words, &NOTHING);
            let rule = Rule {
                from_begin: 0,
                frame: Frame::Expression(code.into()),
                registers: Box::new([(PC, Register::Saved(value.cast_signed()))]),
                returns_by: PC,
                is_signal: false,
                encoding: gimli::Encoding { format: gimli::Format::Dwarf32, version: 4, address_size: 8 },
            };
            let stack = Stack { begin: value, bytes: &at.stack, is_cut: false };
            let _ = by_table(&rule, &at.registers, &stack);
        }
    }
}
