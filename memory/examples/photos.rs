//! Clio's image application (§6, Figure 15): each client is a process of its own at the board, where it has an array of photos and one
//! of JPEG files. It reads a photo, compresses it, and writes the file; then it reads the file, decompresses it, and writes the photo.
//!
//! ```text
//!   board                     a client's range
//!          ┌───────────────────────┬────────────────────────────────────────┐
//!          │ photos: 192 KiB each  │ files: 4 bytes of length and JPEG each │
//!          └───────────────────────┴────────────────────────────────────────┘
//!             │ read        ▲ write    ▲ write                   │ read
//!   client    └─ compress ──┼──────────┘                         │
//!                           └────────────────────── decompress ──┘
//! ```
//!
//! A board keeps nothing per client, so the time of a client should not depend on how many others there are. Clients take turns first:
//! that shows the board alone. Then all work together, as far as this machine has processors for them.
//!
//! `p4rack clio serve`, then `cargo run --release -p p4rack-memory --example photos`.

use clap::Parser;
use jpeg_encoder::{ColorType, Encoder};
use p4rack_hosts::roce::setup::Server;
use p4rack_memory::clio::{Patience, Session};
use p4rack_netdev::clock;
use p4rack_report::text;
use p4rack_wire::{Nanos, SplitMix};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;

/// Width and height of a photo, the paper's.
pub const SIDE: u16 = 256;
/// Bytes of a photo: red, green and blue of each point.
const PHOTO_BYTES: usize = SIDE as usize * SIDE as usize * 3;
/// Bytes of a place for a file: its length and the file.
const FILE_BYTES: usize = 128 << 10;
const LENGTH_BYTES: usize = 4;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Stores, compresses and decompresses photos on a board.
#[derive(Parser, Debug)]
pub struct Args {
    /// Address of the board's set-up service, HOST:PORT
    #[arg(long, default_value = "127.0.0.1:9563")]
    pub board: String,
    /// Numbers of clients: each is measured
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    pub clients: Vec<u16>,
    /// Photos of each client
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub photos: u16,
    /// Quality of the compression
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub quality: u8,
    /// Folder for the files that the board has at the end of each measurement
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    println!("{:>7}  {:^22}  {:^22}", "", "in turns, each client", "together, each client");
    let columns = ["time", "memory", "time", "processor"];
    println!("clients  {:>10}  {:>10}  {:>10}  {:>10}", columns[0], columns[1], columns[2], columns[3]);
    for clients in &args.clients {
        let report = measure(&args, *clients)?;
        let micros = |time: Nanos| text::micros(time.0 as f64 / 1e3);
        let [turns, memory] = [report.turns.wall, report.turns.memory].map(micros);
        let [together, cpu] = [report.together.wall, report.together.cpu].map(micros);
        println!("{clients:>7}  {turns:>10}  {memory:>10}  {together:>10}  {cpu:>10}");
    }
    Ok(())
}

/// Times of a client for all of its photos, the mean of all clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// All of it.
    pub wall: Nanos,
    /// Reads and writes of the board's memory.
    pub memory: Nanos,
    /// Processor time of the client's thread.
    pub cpu: Nanos,
}

/// Results of one number of clients.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// One client works at a time, on one photo.
    pub turns: Times,
    /// All clients work, each in a thread.
    pub together: Times,
}

/// Runs that many clients. Errors: the board can't be reached or has too little memory, or a file is no JPEG.
pub fn measure(args: &Args, clients: u16) -> Result<Report> {
    let mut clients: Vec<Client> = (0..clients).map(|nth| Client::open(args, nth)).collect::<Result<_>>()?;
    for photo in 0..args.photos {
        clients.iter_mut().try_for_each(|client| client.work(photo))?;
    }
    let turns = mean(&mut clients);
    thread::scope(|scope| {
        let work = |client: &mut Client| (0..args.photos).try_for_each(|photo| client.work(photo));
        let threads: Vec<_> = clients.iter_mut().map(|client| scope.spawn(move || work(client))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a client failed".into())))
    })?;
    let together = mean(&mut clients);
    if let Some(folder) = &args.keep {
        clients.iter_mut().try_for_each(|client| client.keep(folder))?;
    }
    Ok(Report { turns, together })
}

/// The clients' times since the last call.
fn mean(clients: &mut [Client]) -> Times {
    let count = clients.len().max(1) as u64;
    let times: Vec<Times> = clients.iter_mut().map(|client| std::mem::take(&mut client.times)).collect();
    let mean = |time: fn(&Times) -> Nanos| Nanos(times.iter().map(|of| time(of).0).sum::<u64>() / count);
    Times { wall: mean(|of| of.wall), memory: mean(|of| of.memory), cpu: mean(|of| of.cpu) }
}

/// A photo of a client: areas of colour that fade into each other, and noise as of a camera.
pub fn photo(client: u16, nth: u16) -> Vec<u8> {
    let mut random = SplitMix(u64::from(client) << 16 | u64::from(nth));
    let lights: Vec<[u64; 3]> = (0..6).map(|_| [(); 3].map(|()| random.between(0, 255))).collect();
    let side = u64::from(SIDE);
    let points = (0..side * side).map(|point| (point % side, point / side));
    let bytes = points.flat_map(|(x, y)| {
        let colour = [0, 1, 2].map(|channel: usize| {
            let near = |light: &[u64; 3]| 1 + x.abs_diff(light[0]).pow(2) + y.abs_diff(light[1]).pow(2);
            let weights = lights.iter().map(|light| (1_000_000 / near(light), light[(channel + 2) % 3]));
            let (sum, all) =
                weights.fold((0, 0), |(sum, all), (weight, of)| (sum + weight * of, all + weight));
            sum / all.max(1)
        });
        let noise = random.between(0, 8);
        colour.map(|of| (of + noise).min(255) as u8)
    });
    bytes.collect()
}

/// A photo as a JPEG file.
fn compress(photo: &[u8], quality: u8) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    Encoder::new(&mut file, quality).encode(photo, SIDE, SIDE, ColorType::Rgb)?;
    Ok(file)
}

/// The photo of a JPEG file.
fn decompress(file: &[u8]) -> Result<Vec<u8>> {
    let photo = JpegDecoder::new(ZCursor::new(file)).decode()?;
    match photo.len() {
        PHOTO_BYTES => Ok(photo),
        bytes => Err(format!("a photo has {bytes} bytes instead of {PHOTO_BYTES}").into()),
    }
}

/// A client: a process at the board, with its photos and files.
struct Client {
    session: Session,
    nth: u16,
    photos: u16,
    quality: u8,
    times: Times,
}

impl Client {
    /// Becomes a process of a board, and stores its photos.
    fn open(args: &Args, nth: u16) -> Result<Client> {
        let server = Server { addr: args.board.clone(), tls: None };
        let bytes = usize::from(args.photos) * (PHOTO_BYTES + FILE_BYTES);
        let session = Session::open(&server, bytes as u64, Patience::default())?;
        let mut client =
            Client { session, nth, photos: args.photos, quality: args.quality, times: Times::default() };
        for photo in 0..args.photos {
            client.write(client.photo_address(photo), &self::photo(nth, photo))?;
        }
        client.times = Times::default();
        Ok(client)
    }

    fn photo_address(&self, photo: u16) -> u64 {
        self.session.range().0 + (usize::from(photo) * PHOTO_BYTES) as u64
    }

    fn file_address(&self, photo: u16) -> u64 {
        let photos = usize::from(self.photos) * PHOTO_BYTES;
        self.session.range().0 + (photos + usize::from(photo) * FILE_BYTES) as u64
    }

    /// Compresses a photo, and decompresses its file.
    fn work(&mut self, photo: u16) -> Result<()> {
        let (start, cpu) = (clock::now(), clock::thread_cpu());
        let bytes = self.read(self.photo_address(photo), PHOTO_BYTES)?;
        self.write_file(photo, &compress(&bytes, self.quality)?)?;
        let file = self.read_file(photo)?;
        self.write(self.photo_address(photo), &decompress(&file)?)?;
        self.times.wall += clock::now() - start;
        self.times.cpu += clock::thread_cpu() - cpu;
        Ok(())
    }

    fn write_file(&mut self, photo: u16, file: &[u8]) -> Result<()> {
        if file.len() > FILE_BYTES - LENGTH_BYTES {
            let bytes = file.len();
            return Err(format!("a file of {bytes} bytes is too long: lower --quality").into());
        }
        let length = (file.len() as u32).to_le_bytes();
        self.write(self.file_address(photo), &[&length, file].concat())
    }

    fn read_file(&mut self, photo: u16) -> Result<Vec<u8>> {
        let address = self.file_address(photo);
        let length = self.read(address, LENGTH_BYTES)?;
        let length = length.first_chunk().map_or(0, |length| u32::from_le_bytes(*length)) as usize;
        if length > FILE_BYTES - LENGTH_BYTES {
            return Err(format!("photo {photo}: the board has a file of {length} bytes").into());
        }
        self.read(address + LENGTH_BYTES as u64, length)
    }

    fn read(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        let start = clock::now();
        let read = self.session.read(address, bytes as u32)?;
        self.times.memory += clock::now() - start;
        Ok(read)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let start = clock::now();
        self.session.write(address, bytes)?;
        self.times.memory += clock::now() - start;
        Ok(())
    }

    /// Copies its files from the board to a folder.
    fn keep(&mut self, folder: &Path) -> Result<()> {
        for photo in 0..self.photos {
            let path = folder.join(format!("client-{}-photo-{photo}.jpg", self.nth));
            fs::write(&path, self.read_file(photo)?)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}
