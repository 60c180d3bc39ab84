// The page: runs grouped by experiment, a row for the runs that differ in their seed alone.
const pageOf = r => KINDS[r.kind];
// What stands at a path of a result: `*` adds all elements up, and `PATH / PATH` is a quotient. Of nothing there is no figure.
function at(of, path) {
  if (path.includes(" / ")) { const [over, under] = path.split(" / ").map(one => at(of, one)); return over == null || !under ? null : over / under; }
  const walk = (value, [key, ...rest]) => key === undefined ? value : value == null || rest.length && value.measured === 0 ? null :
    key === "*" ? Object.values(value).reduce((sum, one) => sum + (walk(one, rest) || 0), 0) : value.count === 0 && key !== "count" ? null : walk(value[key], rest);
  return walk(of, path.split("/").slice(1));
}
const pick = figure => r => { const v = at(r.outcome, figure.path); return typeof v === "number" ? v / figure.per : null; };
const titled = figure => figure.title + (figure.unit && " " + figure.unit);
const short = v => String(v).split("+").length > 2 ? String(v).split("+").length + " hosts" : v;
const groupOf = r => r.sweep || r.outcome.name, caseOf = r => (r.settings || {}).case || "", seedOf = r => r.outcome.seed == null ? "" : String(r.outcome.seed);
// What a case sets is told by its name; beside it stands what varies within it.
const varied = {};
for (const r of RESULTS) for (const [k, v] of Object.entries(r.settings || {})) {
  const key = [groupOf(r), caseOf(r), k].join("|");
  (varied[key] = varied[key] || new Set()).add(String(v));
}
const settings = r => Object.entries(r.settings || {}).filter(([k]) => k === "case" || k !== "seed" && varied[[groupOf(r), caseOf(r), k].join("|")].size > 1);
const label = r => settings(r).map(([k, v]) => k === "case" ? v : k.split(".").pop() + " " + short(v)).join(", ") || r.outcome.scheme || r.outcome.name;
const order = v => String(v).includes("+") || /^h\d+$/.test(v) ? String(v).split("+").length : parseFloat(v);
const compare = (a, b) => a === b ? 0 : order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : a < b ? -1 : 1;
RESULTS.sort((a, b) => compare(groupOf(a), groupOf(b)) || compare(caseOf(a), caseOf(b)) ||
  settings(a).reduce((before, [k, v], i) => before || compare(v, (settings(b)[i] || [])[1]), 0) || compare(seedOf(a), seedOf(b)));
const groups = new Map();
for (const r of RESULTS) {
  // Those of different kinds never share a table.
  const group = r.kind + " " + groupOf(r);
  if (!groups.has(group)) groups.set(group, new Map());
  const rows = groups.get(group), key = label(r);
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
function curves(page, rows, runsOf, chosen, colorOf) {
  const all = rows.map(row => Object.fromEntries(settings(row.runs[0])));
  const keys = [...new Set(all.flatMap(Object.keys))].filter(k => k !== "case" && new Set(all.map(s => s[k])).size > 1 && all.every(s => s[k] == null || !isNaN(order(s[k]))));
  const key = keys.sort((a, b) => new Set(all.map(s => s[b])).size - new Set(all.map(s => s[a])).size)[0];
  if (!key) return chosen.length < 2 ? "" : `<div class="plots two">${page.drawn.map(figure => bars(figure, chosen.map(row => ({ name: row.key, n: colorOf(row), value: mean(valuesOf(runsOf(row), pick(figure))) })))).join("")}</div>`;
  const lines = new Map();
  rows.forEach((row, i) => {
    if (all[i][key] == null) return;
    const name = Object.entries(all[i]).filter(([k]) => k !== key).map(([k, v]) => k === "case" ? v : k.split(".").pop() + " " + short(v)).join(", ") || row.runs[0].outcome.scheme;
    if (!lines.has(name)) lines.set(name, []);
    lines.get(name).push([order(all[i][key]), row]);
  });
  const of = f => [...lines].map(([name, list], n) => ({ name, n, points: list.map(([at, row]) => [at, mean(valuesOf(runsOf(row), f))]).filter(p => p[1] != null).sort((a, b) => a[0] - b[0]) }));
  const hosts = rows.some(row => /^h\d/.test(Object.fromEntries(settings(row.runs[0]))[key])), named = key.split(".").pop(), x = { title: named, unit: hosts ? "hosts" : "" };
  const says = series => series.map(s => `${s.name}: ${s.points.map(p => `${number(p[1])} at ${number(p[0])}`).join(", ")}`).join("; ");
  const drawn = figure => { const s = of(pick(figure)); return plot(figure.title, s, x, figure, says(s), { dots: true }); };
  return `<h3>Over ${escape(named)}</h3>` + legend([...lines.keys()].map((name, n) => [name, n])) + `<div class="plots two">${page.drawn.map(drawn).join("")}</div>`;
}
// Parts of results, such as operations: a row each. The first figure is drawn, with the paper's beside it if there is one.
function parts(page, rows, runsOf, chosen, colorOf) {
  const of = page.parts;
  if (!of) return "";
  const all = r => at(r.outcome, of.path) || {};
  const namesOf = row => Object.entries(all(row.runs[0])).map(([key, one]) => of.name ? one[of.name] : key);
  const partOf = (r, name) => of.name ? all(r).find(one => one[of.name] === name) : all(r)[name];
  const figureOf = (row, name, figure) => mean(valuesOf(runsOf(row), r => pick(figure)({ outcome: partOf(r, name) })));
  const list = rows.filter(row => namesOf(row).length >= of.least).flatMap(row => namesOf(row).map(name => ({ row, name })));
  if (!list.length) return "";
  const called = ({ row, name }) => rows.length > 1 ? `${row.key}: ${name}` : name;
  const body = list.map(one => `<tr><th scope="row">${escape(called(one))}</th>` +
    of.figures.map(figure => `<td data-h="${escape(titled(figure))}">${number(figureOf(one.row, one.name, figure))}</td>`).join("") + "</tr>").join("");
  const head = of.figures.map(figure => `<th scope="col">${escape(titled(figure))}</th>`).join("");
  const [figure] = of.figures, paper = of.figures.find(other => other.title === "paper");
  const items = list.filter(({ row }) => chosen.includes(row)).slice(0, 40).map(one =>
    ({ name: called(one), n: colorOf(one.row), value: figureOf(one.row, one.name, figure), mark: paper && figureOf(one.row, one.name, paper) }));
  return `<h3>${escape(of.title)}</h3><div class="scroll"><table><thead><tr><td></td>${head}</tr></thead><tbody>${body}</tbody></table></div>` +
    `<div class="plots two">${bars({ ...figure, title: `${of.title}: ${figure.title}` }, items)}</div>`;
}
// Latency by tenth of the sizes, each case beside one that is the measure.
function deciles(page, rows, runsOf, measure) {
  const tenths = r => page.tenths && at(r.outcome, page.tenths) || [];
  const sized = rows.filter(row => tenths(row.runs[0]).length);
  if (!sized.length) return "";
  const cases = [...new Set(sized.map(row => caseOf(row.runs[0])))];
  const chosen = cases.includes(measure) ? measure : cases.find(c => /two hosts/.test(c)) || cases[0];
  const tenth = (row, n) => mean(valuesOf(runsOf(row), r => { const d = tenths(r)[n]; return d && d.latency_ns.count ? d.latency_ns.p99 / 1000 : null; }));
  const body = sized.map(row => {
    const other = sized.find(o => caseOf(o.runs[0]) === chosen && rest(o) === rest(row));
    const cells = tenths(row.runs[0]).map((d, n) => {
      const v = tenth(row, n), base = other && tenth(other, n), ratio = base ? v / base : null;
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
function tails(page, chosen, runsOf, colorOf) {
  const figure = page.tail;
  if (!figure) return "";
  // A distribution, or the quantiles that there are.
  const points = r => {
    const v = at(r.outcome, figure.path) || {}, count = v.count || r.outcome.measured;
    const all = v.cdf || (count ? [[v.p50, .5], [v.p99, .99], [v.p999, .999], [v.max, 1]] : []);
    return all.map(([time, p]) => [time / figure.per, p < 1 ? 1 - p : count ? 1 / count : null]);
  };
  const quantile = (row, key) => number(mean(valuesOf(runsOf(row), pick({ ...figure, path: `${figure.path}/${key}` }))));
  const says = chosen.map(row => `${row.key}: p50 ${quantile(row, "p50")} ${figure.unit}, p99 ${quantile(row, "p99")} ${figure.unit}`).join("; ");
  const series = chosen.flatMap(row => runsOf(row).map(r => ({ name: `${row.key}, seed ${seedOf(r)}`, n: colorOf(row), points: points(r) })));
  const percent = v => +(v * 100).toPrecision(3) + " %";
  return plot(figure.title, series, { title: "latency", unit: figure.unit, log: true }, { title: "share", unit: "", log: true, text: percent }, says, { several: true });
}
function overTime(page, chosen, runsOf, colorOf) {
  const figure = page.series;
  if (!figure) return "";
  const series = chosen.flatMap(row => runsOf(row).map(r => ({ name: `${row.key}, seed ${seedOf(r)}`, n: colorOf(row), points: (at(r.outcome, figure.path) || []).map(([t, v]) => [t, v / figure.per]) })));
  const start = Math.min(...series.flatMap(s => s.points.slice(0, 1).map(p => p[0])));
  const most = row => Math.max(...series.filter(s => s.n === colorOf(row)).flatMap(s => s.points.map(p => p[1])));
  const says = chosen.map(row => `${row.key}: at most ${number(most(row))} ${figure.unit}`).join("; ");
  return plot(figure.title, series, { title: "time since the warm-up", unit: "µs" }, { ...figure, title: "most", path: "" }, says, { several: true, from: isFinite(start) ? start : 0 });
}
function section(id, map) {
  const rows = [...map.values()], place = document.createElement("section"), drawn = new Set(rows.slice(0, 6));
  const seeds = [...new Set(rows.flatMap(row => row.runs.map(seedOf)))].sort(compare);
  const page = pageOf(rows[0].runs[0]), name = groupOf(rows[0].runs[0]), columns = page.columns.map(figure => [titled(figure), pick(figure)]);
  place.id = anchor(id);
  let sorted = rows.slice(), measure = null, seed = null;
  // Table and plots show the same runs.
  const runsOf = row => seed == null ? row.runs : row.runs.filter(r => seedOf(r) === seed), colorOf = row => rows.indexOf(row);
  function cell(row, f) {
    const list = valuesOf(runsOf(row), f), m = mean(list), low = Math.min(...list), high = Math.max(...list);
    return m == null ? "" : number(m) + (high - low > .01 * Math.abs(m) ? `<small class="range">${number(low)}–${number(high)}</small>` : "");
  }
  function draw() {
    const used = columns.filter(([, f]) => rows.some(row => valuesOf(row.runs, f).some(v => v !== 0)));
    const head = "<td>case</td>" + used.map(([n], c) => `<th scope="col"><button data-c="${c}" title="sort by it">${escape(n)}</button></th>`).join("") + `<th scope="col" class="text">checks</th>`;
    const body = sorted.map(row => {
      const problems = runsOf(row).flatMap(r => r.outcome.problems), i = colorOf(row);
      const notes = page.notes.filter(([path]) => runsOf(row).some(r => at(r.outcome, path))).map(([, says]) => says);
      return `<tr><th scope="row"><label><input type="checkbox" data-i="${i}" ${drawn.has(row) ? "checked" : ""}> <i class="key" style="background:${drawn.has(row) ? color(i) : "var(--rule)"}"></i>${escape(row.key)}</label></th>` +
        used.map(([n, f]) => `<td data-h="${n}">${cell(row, f)}</td>`).join("") + `<td data-h="checks" class="text ${problems.length ? "off" : ""}">${problems.length ? escape(problems[0]) : "passed"}${notes.length ? `<small>; ${escape(notes.join("; "))}</small>` : ""}</td></tr>`;
    }).join("");
    const chosen = rows.filter(row => drawn.has(row));
    const choice = seeds.length > 1 ? `Showing <select data-what="seed" aria-label="seed"><option value="">all ${seeds.length} seeds</option>${seeds.map(s => `<option ${s === seed ? "selected" : ""} value="${escape(s)}">seed ${escape(s)}</option>`).join("")}</select>` +
      (seed == null ? ": means, with the least and the most where they differ by over 1 %; plots of runs draw each seed." : ".") : seeds[0] && `Seed ${escape(seeds[0])}.`;
    const runs = tails(page, chosen, runsOf, colorOf) + overTime(page, chosen, runsOf, colorOf);
    place.innerHTML = `<h2>${escape(name)}</h2><p class="lead">${escape(page.about)} ${choice} Rows with a box ticked are drawn.</p><div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>` +
      deciles(page, rows, runsOf, measure) + curves(page, rows, runsOf, chosen, colorOf) +
      (runs && `<h3>Runs</h3>` + legend(chosen.map(row => [row.key, colorOf(row)])) + `<div class="plots two">${runs}</div>`) + parts(page, rows, runsOf, chosen, colorOf);
    place.querySelectorAll("button[data-c]").forEach(button => button.onclick = () => {
      const f = used[button.dataset.c][1], v = row => mean(valuesOf(runsOf(row), f)) ?? -1;
      sorted.sort((a, b) => v(b) - v(a)); draw();
    });
    place.querySelectorAll("select").forEach(list => list.onchange = () => { if (list.dataset.what === "seed") seed = list.value || null; else measure = list.value; draw(); });
    place.querySelectorAll("input").forEach(box => box.onchange = () => { const row = rows[box.dataset.i]; box.checked ? drawn.add(row) : drawn.delete(row); draw(); });
  }
  draw();
  document.getElementById("groups").append(place);
}
const anchor = id => "g-" + id.replace(/\W/g, "-");
for (const [id, map] of groups) section(id, map);
document.getElementById("nav").innerHTML = [...groups].map(([id, map]) => `<a href="#${anchor(id)}">${escape(groupOf([...map.values()][0].runs[0]))}</a>`).join("");
