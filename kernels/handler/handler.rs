//! The interrupt handler as firmware in Rust has it: a UART with ring buffers, a protocol as an enum
//! with data, a table-driven CRC, timers behind a trait object, callbacks, soft float, a division.
//! Indices are checked: the panics are `core::panicking`'s, and end in the handler below.
#![no_std]

use core::panic::PanicInfo;
use core::ptr::{addr_of_mut, read_volatile, write_volatile};

const UART: usize = 0x4902_0000;
const TIMER: usize = 0x4804_0000;
const INTC: usize = 0x4820_0000;
const UART_IRQ: u32 = 74;
const TIMER_IRQ: u32 = 37;
const FIFO: usize = 16;
const RING: usize = 64;
const FRAME: usize = 32;

fn read(device: usize, register: usize) -> u32 {
    unsafe { read_volatile((device + 4 * register) as *const u32) }
}

fn write(device: usize, register: usize, value: u32) {
    unsafe { write_volatile((device + 4 * register) as *mut u32, value) }
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    write(INTC, 18, 0xdead);
    loop {}
}

struct Ring {
    data: [u8; RING],
    head: usize,
    tail: usize,
}

impl Ring {
    const EMPTY: Ring = Ring { data: [0; RING], head: 0, tail: 0 };

    fn put(&mut self, byte: u8) -> Result<(), Error> {
        let next = (self.head + 1) % RING;
        if next == self.tail {
            return Err(Error::Full);
        }
        self.data[self.head] = byte;
        self.head = next;
        Ok(())
    }

    fn get(&mut self) -> Option<u8> {
        if self.head == self.tail {
            return None;
        }
        let byte = self.data[self.tail];
        self.tail = (self.tail + 1) % RING;
        Some(byte)
    }
}

enum Error {
    Full,
    Checksum,
    Length(u8),
}

/// Frames: 0x7E, length, payload, checksum (two bytes).
#[derive(Clone, Copy)]
enum State {
    Wait,
    Length,
    Payload { length: u8, at: u8 },
    High { length: u8 },
    Low { length: u8, high: u8 },
}

struct Parser {
    state: State,
    frame: [u8; FRAME],
}

const fn table() -> [u16; 256] {
    let mut rows = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = (i as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000 != 0 { value << 1 ^ 0x1021 } else { value << 1 };
            bit += 1;
        }
        rows[i] = value;
        i += 1;
    }
    rows
}

static CRC: [u16; 256] = table();

fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |sum, byte| sum << 8 ^ CRC[usize::from((sum >> 8) as u8 ^ byte)])
}

impl Parser {
    fn parse(&mut self, byte: u8, out: &mut Ring) -> Result<(), Error> {
        self.state = match self.state {
            State::Wait if byte == 0x7e => State::Length,
            State::Wait => State::Wait,
            State::Length if byte == 0 || usize::from(byte) > FRAME => {
                self.state = State::Wait;
                return Err(Error::Length(byte));
            }
            State::Length => State::Payload { length: byte, at: 0 },
            State::Payload { length, at } => {
                self.frame[usize::from(at)] = byte;
                match at + 1 {
                    next if next == length => State::High { length },
                    at => State::Payload { length, at },
                }
            }
            State::High { length } => State::Low { length, high: byte },
            State::Low { length, high } => {
                self.state = State::Wait;
                let payload = &self.frame[..usize::from(length)];
                if crc(payload) != u16::from_be_bytes([high, byte]) {
                    return Err(Error::Checksum);
                }
                return COMMANDS[usize::from(payload[0] & 3)](payload, out);
            }
        };
        Ok(())
    }
}

type Command = fn(&[u8], &mut Ring) -> Result<(), Error>;
static COMMANDS: [Command; 4] = [ignore, echo, count, ignore];

fn ignore(_: &[u8], _: &mut Ring) -> Result<(), Error> {
    Ok(())
}

fn echo(payload: &[u8], out: &mut Ring) -> Result<(), Error> {
    payload.iter().try_for_each(|byte| out.put(*byte))
}

fn count(payload: &[u8], out: &mut Ring) -> Result<(), Error> {
    out.put(payload.len() as u8)
}

trait Timer {
    fn due(&self, ticks: u32) -> bool;
    fn expired(&mut self, ticks: u32) -> u32;
}

struct Beat {
    due: u32,
    beats: u32,
}

struct Sample {
    due: u32,
    level: f32,
    changed: fn(f32) -> u32,
}

impl Timer for Beat {
    fn due(&self, ticks: u32) -> bool {
        self.due == ticks
    }

    fn expired(&mut self, ticks: u32) -> u32 {
        self.beats += 1;
        self.due = self.due.wrapping_add(10);
        ticks / self.beats
    }
}

impl Timer for Sample {
    fn due(&self, ticks: u32) -> bool {
        self.due == ticks
    }

    fn expired(&mut self, ticks: u32) -> u32 {
        let measured = read(TIMER, 16) as f32 * 0.001;
        self.level += (measured - self.level) * 0.125;
        self.due = ticks.wrapping_add((self.changed)(self.level));
        0
    }
}

fn slowly(level: f32) -> u32 {
    if level > 2.0 { 10 } else { 20 }
}

fn quickly(level: f32) -> u32 {
    if level > 1.0 { 1 } else { 2 }
}

struct Firmware {
    received: Ring,
    to_send: Ring,
    parser: Parser,
    timers: [Option<&'static mut dyn Timer>; 4],
    ticks: u32,
    rate: u32,
    errors: [u32; 3],
}

static mut FIRMWARE: Firmware = Firmware {
    received: Ring::EMPTY,
    to_send: Ring::EMPTY,
    parser: Parser { state: State::Wait, frame: [0; FRAME] },
    timers: [const { None }; 4],
    ticks: 0,
    rate: 0,
    errors: [0; 3],
};
static mut BEATS: [Beat; 2] = [const { Beat { due: 1, beats: 0 } }; 2];
static mut SAMPLES: [Sample; 2] = [
    Sample { due: 2, level: 0.0, changed: slowly },
    Sample { due: 3, level: 0.0, changed: quickly },
];

impl Firmware {
    fn failed(&mut self, result: Result<(), Error>) {
        match result {
            Ok(()) => (),
            Err(Error::Full) => self.errors[0] += 1,
            Err(Error::Checksum) => self.errors[1] += 1,
            Err(Error::Length(byte)) => self.errors[2] += u32::from(byte),
        }
    }

    fn uart(&mut self) {
        for _ in 0..FIFO {
            if read(UART, 5) & 1 == 0 {
                break;
            }
            let result = self.received.put(read(UART, 0) as u8);
            self.failed(result);
        }
        for _ in 0..FIFO {
            let Some(byte) = self.received.get() else { break };
            let result = self.parser.parse(byte, &mut self.to_send);
            self.failed(result);
        }
        for _ in 0..FIFO {
            if read(UART, 5) & 0x20 == 0 {
                break;
            }
            match self.to_send.get() {
                Some(byte) => write(UART, 0, u32::from(byte)),
                None => break,
            }
        }
    }

    fn timer(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        for timer in self.timers.iter_mut().flatten() {
            if timer.due(self.ticks) {
                self.rate = timer.expired(self.ticks);
            }
        }
        write(TIMER, 6, 2);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn handle_irq() {
    let firmware = unsafe { &mut *addr_of_mut!(FIRMWARE) };
    match read(INTC, 16) & 0x7f {
        UART_IRQ => firmware.uart(),
        TIMER_IRQ => firmware.timer(),
        _ => (),
    }
    write(INTC, 18, 1);
}

#[unsafe(no_mangle)]
pub extern "C" fn main() -> ! {
    let firmware = unsafe { &mut *addr_of_mut!(FIRMWARE) };
    let (beats, samples) = unsafe { (&mut *addr_of_mut!(BEATS), &mut *addr_of_mut!(SAMPLES)) };
    for (at, timer) in beats.iter_mut().enumerate() {
        firmware.timers[at] = Some(timer);
    }
    for (at, timer) in samples.iter_mut().enumerate() {
        firmware.timers[at + 2] = Some(timer);
    }
    loop {
        unsafe { core::arch::asm!("cpsie i", "wfi") }
    }
}
