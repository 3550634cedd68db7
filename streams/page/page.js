"use strict";
const $ = id => document.getElementById(id);
const refresh = 1000;
let before = null;      // figures of the last look
const history = [];     // records per second, two minutes of it

const sum = (list, f) => (list || []).reduce((n, x) => n + f(x), 0);
const tasks = f => (f.workers || []).flatMap(w => (w.tasks || []).map(t => ({...t, worker: w.worker})));
function count(n) {
  if (n < 0) return "?";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) if (n >= size * 10 || (unit !== "k" && n >= size)) return (n / size).toFixed(n >= size * 100 ? 0 : 1) + unit;
  return n >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString("en") : n.toFixed(1);
}
function bytes(n) {
  if (n < 0) return "?";
  for (const [unit, size] of [["GB", 2 ** 30], ["MB", 2 ** 20], ["KB", 2 ** 10]]) if (n >= size) return (n / size).toFixed(1) + " " + unit;
  return n + " B";
}
function seconds(s) {
  if (s >= 172800) return Math.floor(s / 86400) + " d";
  if (s >= 7200) return Math.floor(s / 3600) + " h";
  if (s >= 120) return Math.floor(s / 60) + " min";
  return s >= 1 ? (s < 10 ? s.toFixed(1) : Math.round(s)) + " s" : Math.round(s * 1000) + " ms";
}
// the last bucket of a latency has no upper end
const bound = s => s >= 3600 ? "1 h +" : seconds(s);
// rate is the growth per second of a counter; one that began anew counts from 0.
const rate = (now, was, dt) => was === undefined || dt <= 0 ? 0 : (now >= was ? now - was : now) / dt;
const key = t => t.worker + "|" + t.subTopology + "|" + t.partition;

function cell(value, cls) { const td = document.createElement("td"); td.textContent = value; if (cls) td.className = cls; return td; }
function fill(id, heads, rows, none) {
  const table = $(id), head = document.createElement("tr");
  for (const h of heads) { const th = document.createElement("th"); th.textContent = h.replace(/^#/, ""); if (h[0] === "#") th.className = "n"; head.append(th); }
  const body = rows.map(r => { const tr = document.createElement("tr"); r.forEach((v, i) => tr.append(cell(v, heads[i][0] === "#" ? "n" : ""))); return tr; });
  if (!body.length) { const tr = document.createElement("tr"), td = cell(none, "none"); td.colSpan = heads.length; tr.append(td); body.push(tr); }
  table.replaceChildren(head, ...body);
}
function tile(value, text, cls, extra) {
  const div = document.createElement("div"), b = document.createElement("b"), s = document.createElement("span");
  div.className = "tile " + (cls || ""); b.textContent = value; s.textContent = text; div.append(b, s);
  if (extra) div.append(extra);
  return div;
}
function spark() {
  const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), line = document.createElementNS(ns, "polyline");
  const most = Math.max(1, ...history);
  svg.setAttribute("viewBox", "0 0 119 26"); svg.setAttribute("preserveAspectRatio", "none"); svg.setAttribute("aria-hidden", "true");
  line.setAttribute("points", history.map((v, i) => (119 - (history.length - 1 - i)) + "," + (25 - 24 * v / most).toFixed(1)).join(" "));
  svg.append(line);
  return svg;
}
function show(f) {
  const dt = before ? (Date.parse(f.at) - Date.parse(before.at)) / 1000 : 0;
  const now = tasks(f), was = new Map(before ? tasks(before).map(t => [key(t), t]) : []);
  const old = (t, get) => { const o = was.get(key(t)); return o === undefined ? (before ? 0 : undefined) : get(o); };
  const perSecond = sum(now, t => rate(t.processed, old(t, o => o.processed), dt));
  const out = sum(now, t => rate(t.emitted, old(t, o => o.emitted), dt));
  const lag = sum(now, t => sum(t.inputs, i => Math.max(0, i.end - i.position)));
  const dropped = sum(f.workers, w => sum(w.dropped, d => d.N));
  const state = sum(now, t => sum(t.stores, s => Math.max(0, s.bytes)));
  if (before) { history.push(perSecond); if (history.length > 120) history.shift(); }

  const pill = $("state");
  pill.textContent = f.state; pill.className = "pill " + f.state;
  $("since").textContent = "up " + seconds((Date.parse(f.at) - Date.parse(f.began)) / 1000) + " · " + f.identity;
  const p50 = f.latencies && f.latencies.p50, p99 = f.latencies && f.latencies.p99;
  $("tiles").replaceChildren(
    tile(count(perSecond), "records in per second", "", spark()),
    tile(count(out), "records out per second"),
    tile(count(lag), "records behind", lag > 100000 ? "warn" : ""),
    tile(p99 ? bound(p99) : "–", p99 ? "latency p99, p50 " + bound(p50) : "latency"),
    tile((f.workers || []).length + " / " + now.length, "workers / tasks"),
    tile(bytes(state), "state"),
    tile(count(dropped), "late or left out", dropped ? "warn" : ""),
    tile(count(sum(f.workers, w => w.startedOver)), "transactions given up", sum(f.workers, w => w.startedOver) ? "warn" : ""),
  );
  drawing(f, now, old, dt);
  fill("tasks", ["sub-topology", "#partition", "#worker", "#in/s", "#out/s", "#busy", "#behind", "stream time", "#left out"], now.map(t => [
    t.subTopology, t.partition, t.worker, count(rate(t.processed, old(t, o => o.processed), dt)), count(rate(t.emitted, old(t, o => o.emitted), dt)),
    Math.round(100 * rate(t.busy, old(t, o => o.busy), dt)) + " %", count(sum(t.inputs, i => Math.max(0, i.end - i.position))),
    t.streamTime < 0 ? "–" : new Date(t.streamTime).toISOString().replace("T", " ").slice(0, 23), count(sum(t.dropped, d => d.N))]), "no task here yet");
  fill("stores", ["store", "#partition", "#rows", "#bytes", "#uncommitted", "#changelog position"], now.flatMap(t => (t.stores || []).map(s => [
    s.store, t.partition, count(s.rows), bytes(s.bytes), bytes(s.uncommitted), count(s.changelog)])), "no store");
  const reasons = new Map();
  for (const w of f.workers || []) for (const d of w.dropped || []) { const k = d.Node + "\n" + d.Reason; reasons.set(k, (reasons.get(k) || 0) + d.N); }
  fill("dropped", ["node", "reason", "#records"], [...reasons].sort().map(([k, n]) => [...k.split("\n"), n.toLocaleString("en")]), "nothing");
  restores(f.restores || []);
  before = f;
}

function drawing(f, now, old, dt) {
  const rates = {}, total = {}, lags = {}, rows = {};
  for (const t of now) {
    for (const n of t.nodes || []) {
      const prior = old(t, o => ((o.nodes || []).find(x => x.Node === n.Node) || {Records: 0}).Records);
      rates[n.Node] = (rates[n.Node] || 0) + rate(n.Records, prior, dt);
      total[n.Node] = (total[n.Node] || 0) + n.Records;
    }
    for (const i of t.inputs || []) lags[i.topic] = (lags[i.topic] || 0) + Math.max(0, i.end - i.position);
    for (const s of t.stores || []) { const r = rows[s.store] = rows[s.store] || {rows: 0, bytes: 0}; r.rows = s.rows < 0 || r.rows < 0 ? -1 : r.rows + s.rows; r.bytes += Math.max(0, s.bytes); }
  }
  for (const e of document.querySelectorAll("[data-rate]")) { const n = e.dataset.rate; e.textContent = rates[n] === undefined ? "" : rates[n] > 0 ? count(rates[n]) + "/s" : count(total[n]); }
  for (const e of document.querySelectorAll("[data-lag]")) { const n = lags[e.dataset.lag]; e.textContent = n === undefined ? "" : n ? count(n) + " behind" : "up to date"; e.classList.toggle("behind", n > 0); }
  for (const e of document.querySelectorAll("[data-store]")) {
    const r = rows[e.dataset.store], name = e.dataset.store;
    if (r) e.textContent = (name.length > 15 ? "…" + name.slice(-14) : name) + " · " + (r.rows >= 0 ? count(r.rows) + " rows" : bytes(r.bytes));
  }
}

function restores(list) {
  $("restores").hidden = !list.length;
  $("restores").querySelector(".rows").replaceChildren(...list.map(r => {
    const div = document.createElement("div"), bar = document.createElement("progress"), name = document.createElement("span"), rest = document.createElement("span");
    name.textContent = r.Store + " / " + r.Partition + (r.Copy ? " (copy)" : "");
    bar.max = Math.max(1, r.Records + r.Remaining); bar.value = r.Records;
    rest.className = "quiet"; rest.textContent = count(r.Records) + " read, " + count(r.Remaining) + " left, " + bytes(r.Bytes);
    div.append(name, bar, rest);
    return div;
  }));
}

async function look() {
  const trouble = $("trouble");
  try {
    const answer = await fetch("figures.json", {cache: "no-store"});
    if (!answer.ok) throw new Error(await answer.text());
    show(await answer.json());
    trouble.hidden = true;
  } catch (e) {
    trouble.textContent = "No answer from the application: " + e.message;
    trouble.hidden = false;
  }
  setTimeout(look, refresh);
}
look();
