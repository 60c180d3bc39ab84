//! Certificates for tests of encrypted connections.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn openssl(words: &[&str]) {
    let status = Command::new("openssl").args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success(), "openssl {words:?}");
}

/// A certificate and its key, signed by `ca` or by itself.
pub fn certificate(folder: &Path, name: &str, ca: Option<&str>) {
    let file = |end: &str| folder.join(end).display().to_string();
    let (key, cert) = (file(&format!("{name}.key")), file(&format!("{name}.pem")));
    let subject = format!("/CN={name}");
    let mut words = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    words.extend(["-days", "2", "-subj", &subject, "-keyout", &key, "-out", &cert]);
    let (ca_cert, ca_key) = match ca {
        Some(ca) => (file(&format!("{ca}.pem")), file(&format!("{ca}.key"))),
        None => Default::default(),
    };
    if ca.is_some() {
        words.extend(["-CA", &ca_cert, "-CAkey", &ca_key]);
        words.extend(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"]);
    }
    openssl(&words);
}

/// Whether there is openssl; says so when not.
pub fn have_openssl() -> bool {
    let found = Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_ok();
    if !found {
        // Past the harness, which hides what a passing test prints.
        let _ =
            writeln!(std::io::stderr(), "skipped: needs openssl, get it by: sudo apt-get install openssl");
    }
    found
}
