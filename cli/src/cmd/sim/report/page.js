// The page: runs grouped by experiment, a row for the runs that differ in their seed alone.
const first = r => r.outcome.traffic[0] || { latency_ns: {} };
const short = v => String(v).split("+").length > 2 ? String(v).split("+").length + " hosts" : v;
const groupOf = r => r.sweep || r.outcome.name, caseOf = r => (r.settings || {}).case || "", seedOf = r => String(r.outcome.seed);
// What a case sets is told by its name; beside it stands what varies within it.
const varied = {};
for (const r of RESULTS) for (const [k, v] of Object.entries(r.settings || {})) {
  const key = [groupOf(r), caseOf(r), k].join("|");
  (varied[key] = varied[key] || new Set()).add(String(v));
}
const settings = r => Object.entries(r.settings || {}).filter(([k]) => k === "case" || k !== "seed" && varied[[groupOf(r), caseOf(r), k].join("|")].size > 1);
const label = r => settings(r).map(([k, v]) => k === "case" ? v : k.split(".").pop() + " " + short(v)).join(", ") || r.outcome.scheme;
const place = v => String(v).includes("+") || /^h\d+$/.test(v) ? String(v).split("+").length : parseFloat(v);
const compare = (a, b) => a === b ? 0 : place(a) < place(b) ? -1 : place(a) > place(b) ? 1 : a < b ? -1 : 1;
RESULTS.sort((a, b) => compare(groupOf(a), groupOf(b)) || compare(caseOf(a), caseOf(b)) ||
  settings(a).reduce((order, [k, v], i) => order || compare(v, (settings(b)[i] || [])[1]), 0) || compare(seedOf(a), seedOf(b)));
const us = f => r => { const v = first(r).latency_ns; return v.count ? v[f] / 1000 : null; };
const COLUMNS = [
  ["goodput Gb/s", r => r.outcome.goodput_gbps], ["messages", r => first(r).done],
  ["mean µs", us("mean")], ["p50 µs", us("p50")], ["p99 µs", us("p99")], ["p99.9 µs", us("p999")],
  ["queue max KB", r => r.outcome.switch.queue_max_bytes / 1000], ["queue p99.9 KB", r => r.outcome.switch.queue_p999_bytes / 1000],
  ["frames dropped", r => r.outcome.frames_dropped], ["sent again", r => r.outcome.traffic.reduce((a, t) => a + (t.retransmissions || 0), 0)],
  ["overlapping grants %", r => r.outcome.checks.grants ? 100 * r.outcome.checks.overlapping_grants / r.outcome.checks.grants : null],
];
const groups = new Map();
for (const r of RESULTS) {
  if (!groups.has(groupOf(r))) groups.set(groupOf(r), new Map());
  const rows = groups.get(groupOf(r)), key = label(r);
  if (!rows.has(key)) rows.set(key, { key, runs: [] });
  rows.get(key).runs.push(r);
}
const mean = list => list.length ? list.reduce((a, b) => a + b, 0) / list.length : null;
const valuesOf = (runs, f) => runs.map(f).filter(v => v != null);
const rest = row => settings(row.runs[0]).filter(([k]) => k !== "case").map(String).join("|");
const tip = document.getElementById("tip");
document.onmousemove = e => {
  const t = e.target.dataset && e.target.dataset.tip;
  tip.style.display = t ? "block" : "none";
  if (t) { tip.textContent = t; tip.style.left = Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 8) + "px"; tip.style.top = e.clientY + 12 + "px"; }
};
// What varies is an axis: a setting with several values, numbers or lists of hosts. Lines are what the other settings make.
function curves(rows, runsOf) {
  const all = rows.map(row => Object.fromEntries(settings(row.runs[0])));
  const keys = [...new Set(all.flatMap(Object.keys))].filter(k => k !== "case" && new Set(all.map(s => s[k])).size > 1 && all.every(s => s[k] == null || !isNaN(place(s[k]))));
  const key = keys.sort((a, b) => new Set(all.map(s => s[b])).size - new Set(all.map(s => s[a])).size)[0];
  if (!key) return "";
  const lines = new Map();
  rows.forEach((row, i) => {
    if (all[i][key] == null) return;
    const name = Object.entries(all[i]).filter(([k]) => k !== key).map(([k, v]) => k === "case" ? v : k.split(".").pop() + " " + short(v)).join(", ") || row.runs[0].outcome.scheme;
    if (!lines.has(name)) lines.set(name, []);
    lines.get(name).push([place(all[i][key]), row]);
  });
  const of = f => [...lines].map(([name, list], n) => ({ name, n, points: list.map(([at, row]) => [at, mean(valuesOf(runsOf(row), f))]).filter(p => p[1] != null).sort((a, b) => a[0] - b[0]) }));
  const hosts = rows.some(row => /^h\d/.test(Object.fromEntries(settings(row.runs[0]))[key])), named = key.split(".").pop(), x = { title: named, unit: hosts ? "hosts" : "" };
  const says = series => series.map(s => `${s.name}: ${s.points.map(p => `${number(p[1])} at ${number(p[0])}`).join(", ")}`).join("; ");
  const drawn = (title, f, y) => { const s = of(f); return plot(title, s, x, y, says(s), { dots: true }); };
  return `<h3>Over ${escape(named)}</h3>` + legend([...lines.keys()].map((name, n) => [name, n])) + `<div class="plots two">` +
    drawn("Goodput", r => r.outcome.goodput_gbps, { title: "goodput", unit: "Gb/s" }) + drawn("99th percentile of latency", us("p99"), { title: "p99", unit: "µs" }) + "</div>";
}
// Latency by tenth of the sizes, each case beside one that is the measure.
function deciles(rows, runsOf, measure) {
  const sized = rows.filter(row => (first(row.runs[0]).deciles || []).length);
  if (!sized.length) return "";
  const cases = [...new Set(sized.map(row => caseOf(row.runs[0])))];
  const chosen = cases.includes(measure) ? measure : cases.find(c => /two hosts/.test(c)) || cases[0];
  const at = (row, n) => mean(valuesOf(runsOf(row), r => { const d = first(r).deciles[n]; return d && d.latency_ns.count ? d.latency_ns.p99 / 1000 : null; }));
  const body = sized.map(row => {
    const other = sized.find(o => caseOf(o.runs[0]) === chosen && rest(o) === rest(row));
    const cells = first(row.runs[0]).deciles.map((d, n) => {
      const v = at(row, n), base = other && at(other, n), ratio = base ? v / base : null;
      const beside = ratio && other !== row ? ` <small class="${ratio > 1.25 ? "off" : ""}">${ratio.toFixed(2)}</small>` : "";
      return `<td data-h="${d.up_to_bytes ? "to " + number(d.up_to_bytes) + " B" : "larger"}" data-tip="${d.up_to_bytes ? "up to " + d.up_to_bytes + " bytes" : "larger"}">${number(v)}${beside}</td>`;
    }).join("");
    return `<tr><th scope="row">${escape(row.key)}</th>${cells}</tr>`;
  }).join("");
  const head = [...Array(10).keys()].map(n => `<th scope="col">${n + 1}</th>`).join("");
  const options = cases.map(c => `<option ${c === chosen ? "selected" : ""}>${escape(c)}</option>`).join("");
  return `<h3>99th percentile by tenth of the sizes, µs; how many times that of <select data-what="measure">${options}</select></h3><div class="scroll"><table><thead><tr><td></td>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}
// The share of messages that took longer: a tail is a slope here and not a line along the edge.
function tails(chosen, runsOf, colorOf) {
  const points = r => { const v = first(r).latency_ns; return (v.cdf || []).map(([ns, p]) => [ns / 1000, p < 1 ? 1 - p : v.count ? 1 / v.count : null]); };
  const says = chosen.map(row => `${row.key}: p50 ${number(mean(valuesOf(runsOf(row), us("p50"))))} µs, p99 ${number(mean(valuesOf(runsOf(row), us("p99"))))} µs`).join("; ");
  const series = chosen.flatMap(row => runsOf(row).map(r => ({ name: `${row.key}, seed ${seedOf(r)}`, n: colorOf(row), points: points(r) })));
  const percent = v => +(v * 100).toPrecision(3) + " %";
  return plot("Messages that took longer", series, { title: "latency", unit: "µs", log: true }, { title: "share of messages", unit: "", log: true, text: percent }, says, { several: true });
}
function queues(chosen, runsOf, colorOf) {
  const series = chosen.flatMap(row => runsOf(row).map(r => ({ name: `${row.key}, seed ${seedOf(r)}`, n: colorOf(row), points: r.outcome.switch.queue_series.map(([t, b]) => [t, b / 1000]) })));
  const start = Math.min(...series.flatMap(s => s.points.slice(0, 1).map(p => p[0])));
  const says = chosen.map(row => `${row.key}: at most ${number(Math.max(...valuesOf(runsOf(row), r => r.outcome.switch.queue_max_bytes / 1000)))} KB`).join("; ");
  return plot("Fullest queue of the switch", series, { title: "time since the warm-up", unit: "µs" }, { title: "queue", unit: "KB" }, says, { several: true, from: isFinite(start) ? start : 0 });
}
function section(name, map) {
  const rows = [...map.values()], at = document.createElement("section"), drawn = new Set(rows.slice(0, 6));
  const seeds = [...new Set(rows.flatMap(row => row.runs.map(seedOf)))].sort(compare);
  at.id = "g-" + name.replace(/\W/g, "-");
  let order = rows.slice(), measure = null, seed = null;
  // Table and plots show the same runs.
  const runsOf = row => seed == null ? row.runs : row.runs.filter(r => seedOf(r) === seed), colorOf = row => rows.indexOf(row);
  function cell(row, f) {
    const list = valuesOf(runsOf(row), f), m = mean(list), low = Math.min(...list), high = Math.max(...list);
    return m == null ? "" : number(m) + (high - low > .01 * Math.abs(m) ? `<small class="range">${number(low)}–${number(high)}</small>` : "");
  }
  function draw() {
    const used = COLUMNS.filter(([, f]) => rows.some(row => valuesOf(row.runs, f).some(v => v !== 0)));
    const head = "<td>case</td>" + used.map(([n], c) => `<th scope="col"><button data-c="${c}" title="sort by it">${n}</button></th>`).join("") + `<th scope="col" class="text">checks</th>`;
    const body = order.map(row => {
      const problems = runsOf(row).flatMap(r => r.outcome.problems), i = colorOf(row);
      return `<tr><th scope="row"><label><input type="checkbox" data-i="${i}" ${drawn.has(row) ? "checked" : ""}> <i class="key" style="background:${drawn.has(row) ? color(i) : "var(--rule)"}"></i>${escape(row.key)}</label></th>` +
        used.map(([n, f]) => `<td data-h="${n}">${cell(row, f)}</td>`).join("") + `<td data-h="checks" class="text ${problems.length ? "off" : ""}">${problems.length ? escape(problems[0]) : "passed"}</td></tr>`;
    }).join("");
    const chosen = rows.filter(row => drawn.has(row));
    const choice = seeds.length > 1 ? `Showing <select data-what="seed" aria-label="seed"><option value="">all ${seeds.length} seeds</option>${seeds.map(s => `<option ${s === seed ? "selected" : ""} value="${escape(s)}">seed ${escape(s)}</option>`).join("")}</select>` +
      (seed == null ? ": means, with the least and the most where they differ by over 1 %; plots of runs draw each seed." : ".") : `Seed ${escape(seeds[0])}.`;
    at.innerHTML = `<h2>${escape(name)}</h2><p class="lead">${choice} Rows with a box ticked are drawn.</p><div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>` +
      deciles(rows, runsOf, measure) + curves(rows, runsOf) +
      `<h3>Runs</h3>` + legend(chosen.map(row => [row.key, colorOf(row)])) + `<div class="plots two">` + tails(chosen, runsOf, colorOf) + queues(chosen, runsOf, colorOf) + "</div>";
    at.querySelectorAll("button[data-c]").forEach(button => button.onclick = () => {
      const f = used[button.dataset.c][1], v = row => mean(valuesOf(runsOf(row), f)) ?? -1;
      order.sort((a, b) => v(b) - v(a)); draw();
    });
    at.querySelectorAll("select").forEach(list => list.onchange = () => { if (list.dataset.what === "seed") seed = list.value || null; else measure = list.value; draw(); });
    at.querySelectorAll("input").forEach(box => box.onchange = () => { const row = rows[box.dataset.i]; box.checked ? drawn.add(row) : drawn.delete(row); draw(); });
  }
  draw();
  document.getElementById("groups").append(at);
}
const [runs, failed] = COUNTS, verdict = document.getElementById("verdict");
verdict.textContent = failed ? `${failed} of ${runs} runs failed a check` : `${runs} runs, all checks passed`;
verdict.classList.add(failed ? "bad" : "good");
for (const [name, map] of groups) section(name, map);
document.getElementById("nav").innerHTML = [...groups.keys()].map(n => `<a href="#g-${n.replace(/\W/g, "-")}">${escape(n)}</a>`).join("");
