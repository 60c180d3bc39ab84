// Plots: SVG as text, as wide as the page lets them be.
const escape = text => String(text).replace(/[&<>"']/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }[c]));
const number = x => x == null || isNaN(x) ? "" : Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en").replaceAll(",", "\u202f") : +x.toPrecision(4) + "";
const color = n => `var(--s${n % 10})`;
// An axis: where a value lies between 0 and 1, and the round values that are marked.
function axis(values, log) {
  const finite = values.filter(v => isFinite(v) && (!log || v > 0));
  let low = Math.min(...finite), high = Math.max(...finite);
  if (log) {
    [low, high] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    if (high === low) high++;
    const decades = [...Array(high - low + 1).keys()].map(i => 10 ** (low + i));
    // One or two decades need marks within them.
    const ticks = high - low > 2 ? decades : decades.slice(0, -1).flatMap(d => [d, 2 * d, 5 * d]).concat(decades.slice(-1));
    return { ticks, at: v => (Math.log10(Math.max(v, 10 ** low)) - low) / (high - low) };
  }
  low = Math.min(low, 0);
  if (high <= low) high = low + 1;
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough * .999);
  const top = Math.ceil(high / step - 1e-9);
  return { ticks: [...Array(top - Math.ceil(low / step) + 1).keys()].map(i => +((i + Math.ceil(low / step)) * step).toPrecision(12)), at: v => (v - low) / (top * step - low) };
}
// `series`: name, color number, points [x, y]; `x` and `y`: title, unit, log, text of a mark; `says`: the plot in words.
function plot(title, series, x, y, says, options = {}) {
  series = series.map(s => ({ ...s, points: s.points.filter(p => p[1] != null && (!y.log || p[1] > 0)) })).filter(s => s.points.length);
  if (!series.length) return "";
  const W = 520, H = 280, L = 58, R = 14, T = 12, B = 40, all = series.flatMap(s => s.points);
  const from = options.from || 0, ax = axis(all.map(p => p[0] - from), x.log), ay = axis(all.map(p => p[1]), y.log);
  const X = v => L + ax.at(v - from) * (W - L - R), Y = v => H - B - ay.at(v) * (H - B - T);
  const text = (a, v) => a.text ? a.text(v) : number(v);
  let out = "";
  for (const t of ax.ticks) out += `<path class="grid" d="M${X(t + from).toFixed(1)} ${T}V${H - B}"/><text x="${X(t + from).toFixed(1)}" y="${H - B + 14}" text-anchor="middle">${text(x, t)}</text>`;
  for (const t of ay.ticks) out += `<path class="grid" d="M${L} ${Y(t).toFixed(1)}H${W - R}"/><text x="${L - 6}" y="${(Y(t) + 3.5).toFixed(1)}" text-anchor="end">${text(y, t)}</text>`;
  for (const s of series) {
    const line = s.points.map(p => `${X(p[0]).toFixed(1)},${Y(p[1]).toFixed(1)}`).join(" ");
    out += `<polyline class="series ${options.several ? "several" : ""}" points="${line}" stroke="${color(s.n)}" data-tip="${escape(s.name)}"/>`;
    if (options.dots) out += s.points.map(p => `<circle cx="${X(p[0]).toFixed(1)}" cy="${Y(p[1]).toFixed(1)}" r="3.5" fill="${color(s.n)}" data-tip="${escape(`${s.name}: ${number(p[1])} ${y.unit} at ${number(p[0])} ${x.unit}`)}"/>`).join("");
  }
  const named = a => escape(a.title + (a.unit && a.unit !== a.title ? ", " + a.unit : "") + (a.log ? " (log)" : ""));
  return `<figure><figcaption>${escape(title)}</figcaption><svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escape(`${title}. ${says}`)}">${out}` +
    `<path class="axis" d="M${L} ${T}V${H - B}H${W - R}"/><text x="${(W - R + L) / 2}" y="${H - 6}" text-anchor="middle">${named(x)}</text>` +
    `<text transform="translate(12 ${(T + H - B) / 2})rotate(-90)" text-anchor="middle">${named(y)}</text></svg></figure>`;
}
// Horizontal bars, one a line: name, color number, value; `mark` is another source's value, a stroke across the bar.
function bars(figure, items) {
  items = items.filter(item => item.value != null);
  if (!items.length) return "";
  const W = 520, L = 200, R = 58, H = 20 * items.length + 12, top = axis(items.flatMap(item => [item.value, item.mark || 0]), false), X = v => L + top.at(v) * (W - L - R);
  const clip = text => text.length > 34 ? text.slice(0, 33) + "…" : text;
  const line = (item, i) => {
    const y = 6 + 20 * i, says = `${item.name}: ${number(item.value)} ${figure.unit}` + (item.mark != null ? `; paper ${number(item.mark)} ${figure.unit}` : "");
    return `<text x="${L - 6}" y="${y + 11}" text-anchor="end" data-tip="${escape(item.name)}">${escape(clip(item.name))}</text>` +
      `<rect x="${L}" y="${y}" width="${Math.max(0, X(item.value) - L).toFixed(1)}" height="14" fill="${color(item.n)}" data-tip="${escape(says)}"/>` +
      (item.mark != null ? `<path class="mark" d="M${X(item.mark).toFixed(1)} ${y - 2}v18" data-tip="${escape(says)}"/>` : "") +
      `<text x="${(X(Math.max(item.value, item.mark || 0)) + 5).toFixed(1)}" y="${y + 11}">${number(item.value)}</text>`;
  };
  const named = figure.title + (figure.unit && ", " + figure.unit), marked = items.some(item => item.mark != null) ? "; the strokes are the paper’s" : "";
  const says = items.map(item => `${item.name}: ${number(item.value)}`).join("; ");
  return `<figure><figcaption>${escape(named + marked)}</figcaption><svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escape(`${named}. ${says}`)}">${items.map(line).join("")}` +
    `<path class="axis" d="M${L} 2V${H - 4}"/></svg></figure>`;
}
const legend = entries => `<p class="legend">${entries.map(([name, n]) => `<span><i class="key" style="background:${color(n)}"></i>${escape(name)}</span>`).join("")}</p>`;
