//! Certificates for tests of encrypted connections, made by openssl. Test programs of several crates include this file.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Configuration of authorities, which can also sign expired certificates.
const AUTHORITY: &str = "
[ca]
default_ca = all
[all]
database = index.txt
rand_serial = yes
default_md = sha256
policy = names
new_certs_dir = .
[names]
commonName = supplied
[leaf]
basicConstraints = CA:FALSE
subjectAltName = ";

/// Last year of certificates that are valid.
pub const VALID: u32 = 2099;

/// Files NAME.pem, certificates, and NAME.key in a folder of their own. There are two authorities, `ca` and `other`.
pub struct Certificates(tempfile::TempDir);

impl Certificates {
    /// Makes both authorities. `None`, and a word why, where there is no openssl.
    pub fn new() -> Option<Certificates> {
        if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
            // Past the harness, which hides a passing test's output.
            let _ = std::io::stderr()
                .write_all(b"skipped: needs openssl, get it by: sudo apt-get install openssl\n");
            return None;
        }
        let made = Certificates(tempfile::tempdir().expect("a scratch folder"));
        std::fs::write(made.file("index.txt"), "").expect("written");
        for name in ["ca", "other"] {
            made.key(name, &["-x509", "-days", "2", "-out", &format!("{name}.pem")]);
        }
        Some(made)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Runs openssl in the folder.
    pub fn openssl(&self, words: &[&str]) {
        let output = Command::new("openssl").args(words).current_dir(self.path()).output();
        let output = output.expect("openssl starts");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A new key, and the output of `openssl req` for it with more arguments.
    pub fn key(&self, name: &str, more: &[&str]) {
        let (subject, key) = (format!("/CN={name}"), format!("{name}.key"));
        let mut words = vec!["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        words.extend(["-subj", &subject, "-keyout", &key]);
        words.extend(more);
        self.openssl(&words);
    }

    /// A certificate that is signed by an authority for these names, such as `DNS:localhost`, to the end of a year.
    pub fn sign(&self, name: &str, authority: &str, names: &str, year: u32) {
        std::fs::write(self.file("ca.cnf"), format!("{AUTHORITY}{names}\n")).expect("written");
        self.key(name, &["-out", "request"]);
        let (cert, key) = (format!("{authority}.pem"), format!("{authority}.key"));
        let (out, end) = (format!("{name}.pem"), format!("{year}1231000000Z"));
        let mut words = vec!["ca", "-batch", "-config", "ca.cnf", "-cert", &cert, "-keyfile", &key];
        words.extend(["-in", "request", "-out", &out, "-notext", "-extensions", "leaf"]);
        words.extend(["-startdate", "20200101000000Z", "-enddate", &end]);
        self.openssl(&words);
    }

    /// A certificate without authority, for these names.
    pub fn sign_itself(&self, name: &str, names: &str) {
        let (out, names) = (format!("{name}.pem"), format!("subjectAltName={names}"));
        let leaf = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", &names];
        self.key(name, &[&["-x509", "-days", "2", "-out", &out], &leaf[..]].concat());
    }
}
