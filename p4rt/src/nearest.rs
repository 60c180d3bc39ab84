//! Suggests the name that was most likely meant by a misspelt one.

/// The most similar name, if any is similar enough.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = match wanted.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let distance = edit_distance(wanted, name);
        // Ties go to the alphabetically first, in any order of the table.
        if distance <= limit && distance < name.len() && best.is_none_or(|b| (distance, name) < b) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name.to_owned())
}

/// Levenshtein distance, with a swap of neighbours counted as one. Differences in case alone count as one in
/// total.
fn edit_distance(a: &str, b: &str) -> usize {
    if a.eq_ignore_ascii_case(b) {
        return 1;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 3 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let substitute = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = substitute.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_slips_and_refuses_strangers() {
        let names = ["ethernet", "ipv4", "ttl"];
        let find = |w| nearest(w, names.into_iter());
        assert_eq!(find("etherent").as_deref(), Some("ethernet"));
        assert_eq!(find("ipv6").as_deref(), Some("ipv4"));
        assert_eq!(find("TTL").as_deref(), Some("ttl"));
        assert_eq!(find("counter"), None);
        assert_eq!(find("x"), None);
    }

    #[test]
    fn a_swap_of_neighbours_is_nearer_than_another_word() {
        let names = ["mac", "mode", "name", "port"];
        let find = |w| nearest(w, names.into_iter());
        assert_eq!(find("nmae").as_deref(), Some("name"));
        assert_eq!(find("prot").as_deref(), Some("port"));
        assert_eq!(find("moed").as_deref(), Some("mode"));
        assert_eq!(find("colour"), None);
    }
}
