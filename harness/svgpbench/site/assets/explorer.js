// Means, errors and outcomes of pairs come with the page; here they are chosen among, ranked and drawn.
"use strict";

(async () => {
  const holder = document.getElementById("data");
  if (!holder) return;
  if (!window.DecompressionStream) {
    document.getElementById("says").textContent =
      "This page needs a browser of 2023 or newer; the same numbers are in Downloads.";
    return;
  }
  const bytes = Uint8Array.from(atob(holder.textContent), (letter) => letter.charCodeAt(0));
  const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const EXPERIMENTS = await new Response(text).json();
  const FEWEST = 5; // data sets below which an interval of a rank says nothing
  const MOST_CHARTS = 12;
  const MOST_WIDTH = 36; // pixels that a rank's number and the names beside the chart take
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const DASHED = ["", "7 4", "2 3", "7 3 2 3", "11 4", "11 3 2 3"];
  const [BETTER, , EQUAL, UNDECIDED] = [0, 1, 2, 3];
  const $ = (id) => document.getElementById(id);
  const state = {};
  let at; // the experiment that is shown, with an index of its groups

  // ---- the choice, in the address -----------------------------------------------------------------

  function fresh(experiment) {
    const metric = experiment.metrics.findIndex((m) => m.name === "nlpd");
    return {
      data: new Set(experiment.data.keys()),
      methods: new Set(experiment.methods.keys()),
      metric: Math.max(metric, 0),
      backend: experiment.backend,
      moment: "end",
      index: -1, // the last
      cost: 0,
    };
  }

  function restore() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const place = EXPERIMENTS.findIndex((one) => one.name === asked.get("e"));
    open(EXPERIMENTS[Math.max(place, 0)]);
    const named = (key, names, otherwise) => {
      const found = names.indexOf(asked.get(key));
      return found < 0 ? otherwise : found;
    };
    const several = (key, names) => {
      const found = asked.getAll(key).map((name) => names.indexOf(name)).filter((i) => i >= 0);
      return asked.has(key) ? new Set(found) : new Set(names.keys());
    };
    state.metric = named("k", at.metrics.map((m) => m.name), state.metric);
    state.backend = named("b", at.backends, state.backend);
    state.data = several("d", at.data);
    state.methods = several("m", at.methods);
    state.cost = asked.get("c") === "seconds" ? 1 : 0;
    const [kind, index] = (asked.get("at") ?? "end").split(":");
    if (moments(kind).length) {
      state.moment = kind;
      state.index = Math.min(Math.max(Number(index) || 0, 0), moments(kind).length - 1);
    }
    fill();
    draw();
  }

  function keep() {
    const said = new URLSearchParams([["e", at.name]]);
    const standard = fresh(at);
    if (state.metric !== standard.metric) said.set("k", at.metrics[state.metric].name);
    if (state.backend !== standard.backend) said.set("b", at.backends[state.backend]);
    for (const [key, chosen, names] of [["d", state.data, at.data], ["m", state.methods, at.methods]]) {
      if (chosen.size === names.length) continue;
      for (const i of chosen) said.append(key, names[i]);
      if (!chosen.size) said.append(key, "");
    }
    if (state.moment !== "end") said.set("at", `${state.moment}:${state.index}`);
    if (state.cost) said.set("c", "seconds");
    history.replaceState(null, "", `#${said}`);
  }

  function open(experiment) {
    at = experiment;
    if (!at.groupAt) {
      at.groupAt = new Map(at.groups.map((g) => [`${g.d}|${g.m}|${g.b}`, g]));
      at.effectAt = new Map();
      for (const [score, rows] of Object.entries(at.effects)) {
        for (const [d, first, second, outcome] of rows) {
          at.effectAt.set(`${score}|${d}|${first}|${second}`, outcome);
        }
      }
    }
    Object.assign(state, fresh(at));
  }

  const moments = (kind) => ({ steps: at.iterations, time: at.times })[kind] ?? [];
  const metric = () => at.metrics[state.metric];
  const data = () => [...state.data].sort((a, b) => a - b);
  const methods = () => [...state.methods].sort((a, b) => a - b);
  const group = (d, m) => at.groupAt.get(`${d}|${m}|${state.backend}`);

  // ---- numbers ------------------------------------------------------------------------------------

  function score(g) {
    if (!g) return [null, null];
    if (state.moment === "end") return g.end[state.metric];
    return g[state.moment][state.metric]?.[state.index] ?? [null, null];
  }

  function loss(value, better) {
    if (typeof better === "number") return Math.abs(value - better);
    return better === "higher" ? -value : value;
  }

  // ties shared; who failed or has no score is last
  function ranked(losses) {
    return losses.map((mine) => {
      const before = losses.filter((other) => other < mine).length;
      const same = losses.filter((other) => other === mine).length;
      return before + (same + 1) / 2;
    });
  }

  // a row a data set that has every method, a column a method
  function ranks() {
    const chosen = methods();
    const rows = [];
    for (const d of data()) {
      const groups = chosen.map((m) => group(d, m));
      if (groups.some((g) => !g)) continue;
      const losses = groups.map((g) => {
        const [mean] = score(g);
        return g.failed || mean === null ? Infinity : loss(mean, metric().better);
      });
      if (losses.some(Number.isFinite)) rows.push(ranked(losses));
    }
    return rows;
  }

  // The mean of n ranks drawn with replacement: its distribution exactly, half ranks being whole numbers.
  function bootstrapped(values) {
    const n = values.length;
    const doubled = values.map((rank) => Math.round(2 * rank));
    let sums = new Map([[0, 1]]);
    for (let draw = 0; draw < n; draw += 1) {
      const next = new Map();
      for (const [sum, p] of sums) {
        for (const value of doubled) next.set(sum + value, (next.get(sum + value) ?? 0) + p / n);
      }
      sums = next;
    }
    const sorted = [...sums].sort((a, b) => a[0] - b[0]);
    const quantile = (level) => {
      let total = 0;
      for (const [sum, p] of sorted) {
        total += p;
        if (total >= level - 1e-12) return sum / (2 * n);
      }
      return sorted.at(-1)[0] / (2 * n);
    };
    return [quantile(0.025), quantile(0.975)];
  }

  function averageRanks() {
    const rows = ranks();
    return methods().map((m, place) => {
      const mine = rows.map((row) => row[place]);
      const mean = mine.reduce((sum, rank) => sum + rank, 0) / mine.length;
      const interval = rows.length >= FEWEST ? bootstrapped(mine) : null;
      return { m, mean, interval, sets: rows.length };
    });
  }

  // as the table of accuracy against compute has it: dominated, open or on the front at its cost
  function place(d, m) {
    const mine = group(d, m);
    if (!mine || mine.end[state.metric][0] === null) return { place: "failed", by: [] };
    const price = mine.cost[state.cost];
    if (price === null) return { place: "uncounted", by: [] };
    const over = [];
    const open = [];
    let known = false;
    for (const rival of methods()) {
      const other = group(d, rival);
      const spent = other?.cost[state.cost] ?? null;
      if (rival === m || !other || spent === null || spent > at.alike * price) continue;
      const outcome = at.effectAt.get(`${metric().name}|${d}|${rival}|${m}`);
      if (outcome === undefined) return { place: "", by: [] };
      known = true;
      if (outcome === BETTER || (outcome === EQUAL && at.alike * spent < price)) over.push(rival);
      else if (outcome === UNDECIDED) open.push(rival);
    }
    if (!known && !(metric().name in at.effects)) return { place: "", by: [] };
    if (over.length) return { place: "dominated", by: over };
    return open.length ? { place: "open", by: open } : { place: "front", by: [] };
  }

  // ---- words --------------------------------------------------------------------------------------

  const digits = (x, n = 4) => (x === null ? "–" : Number(x.toPrecision(n)).toString());
  function withError([mean, error]) {
    if (mean === null) return "–";
    if (error === null || error === 0) return digits(mean);
    const places = Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 4);
    return `${mean.toFixed(places)} ± ${error.toFixed(places)}`;
  }
  function cost(x) {
    if (x === null) return "–";
    const power = x > 0 ? Math.min(Math.max(Math.floor(Math.log10(x) / 3), 0), 6) : 0;
    return `${digits(x / 1000 ** power, 3)} ${["", "k", "M", "G", "T", "P", "E"][power]}`.trim();
  }
  function momentSays() {
    if (state.moment === "end") return "at the end of training";
    const value = moments(state.moment)[state.index];
    return state.moment === "steps" ? `after ${value} iterations` : `after ${digits(value, 3)} s of training`;
  }

  // ---- drawing ------------------------------------------------------------------------------------

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function colour(m) {
    return at.colours[m] === "#000000" ? css("--ink") : at.colours[m];
  }
  function layout(more) {
    const axis = {
      gridcolor: css("--line"), linecolor: css("--line"), zeroline: false, automargin: true,
      tickfont: { size: 11 }, title: { font: { size: 12 } }, fixedrange: true,
    };
    const { xaxis, yaxis, ...rest } = more;
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
      font: { family: css("--sans"), color: css("--ink"), size: 12 },
      margin: { l: 8, r: 16, t: 8, b: 40 }, hoverlabel: { align: "left" },
      xaxis: { ...axis, ...xaxis, title: { ...axis.title, text: xaxis?.label ?? "" } },
      yaxis: { ...axis, ...yaxis, title: { ...axis.title, text: yaxis?.label ?? "" } },
      ...rest,
    };
  }
  // a logarithmic axis with ticks at 1, 2 and 5 where it is short
  function logarithmic(values, label, says) {
    const known = values.filter((x) => x > 0);
    const [low, high] = [Math.log10(Math.min(...known)), Math.log10(Math.max(...known))];
    const room = 0.06 * (high - low || 1);
    const steps = high - low < 1.6 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = Math.floor(low - room); power <= high + room; power += 1) {
      for (const step of steps) ticks.push(step * 10 ** power);
    }
    const shown = ticks.filter((x) => Math.log10(x) >= low - room && Math.log10(x) <= high + room);
    return { type: "log", label, range: [low - room, high + room], tickvals: shown, ticktext: shown.map(says) };
  }
  const CONFIG = { displayModeBar: false, responsive: true };

  function plot(target, traces, more, says) {
    target.setAttribute("role", "img");
    target.setAttribute("aria-label", says);
    return Plotly.react(target, traces, layout(more), CONFIG);
  }

  // a frame with a heading for each of some data sets, as many as were there used again
  function frames(target, shown) {
    while (target.children.length > shown.length) {
      Plotly.purge(target.lastElementChild.lastElementChild);
      target.lastElementChild.remove();
    }
    while (target.children.length < shown.length) {
      const frame = document.createElement("div");
      const title = document.createElement("h3");
      const chart = document.createElement("div");
      chart.className = "chart";
      frame.append(title, chart);
      target.append(frame);
    }
    return shown.map((d, i) => {
      const [title, chart] = target.children[i].children;
      title.textContent = at.data[d];
      return chart;
    });
  }

  function drawRanks(found) {
    const rows = found.filter((one) => Number.isFinite(one.mean)).reverse();
    const sets = found[0]?.sets ?? 0;
    const enough = sets > 0 && methods().length > 1;
    $("ranks").hidden = !enough;
    $("ranks-note").textContent = !enough
      ? "No data set has a score of all the chosen methods, two at least."
      : `Mean rank over ${sets} data set${sets > 1 ? "s" : ""}, 1 the best, ties shared, a method with a failed ` +
        `cell last${sets >= FEWEST ? "; bars: 95 % bootstrap intervals over data sets" : `; no interval below ${FEWEST} data sets`}. ` +
        "It depends on who takes part.";
    if (!enough) return;
    const half = (one, end) => (one.interval ? Math.abs(one.interval[end] - one.mean) : 0);
    const traces = rows.map((one) => ({
      x: [one.mean], y: [at.methods[one.m]], mode: "markers", type: "scatter",
      marker: { color: colour(one.m), size: 10 },
      error_x: {
        type: "data", symmetric: false, array: [half(one, 1)], arrayminus: [half(one, 0)],
        color: colour(one.m), thickness: 2, width: 5, visible: Boolean(one.interval),
      },
      hovertemplate: `%{y}: %{x:.2f}<extra></extra>`,
    }));
    const said = [...found].sort((a, b) => a.mean - b.mean).map((one) => `${at.methods[one.m]} ${one.mean.toFixed(2)}`);
    plot($("ranks"), traces, {
      height: 60 + 30 * rows.length,
      xaxis: {
        label: `average rank in ${metric().title}`, range: [0.8, methods().length + 0.2],
        tick0: 1, dtick: Math.ceil((methods().length * MOST_WIDTH) / $("ranks").clientWidth),
      },
      yaxis: { showgrid: false },
    }, `Average ranks in ${metric().title}: ${said.join(", ")}`);
  }

  function drawFront(shown) {
    const charts = frames($("front"), shown);
    const titles = ["FLOPs of training", "seconds of training"];
    shown.forEach((d, i) => {
      const points = methods().map((m) => ({ m, g: group(d, m), ...place(d, m) }))
        .filter(({ g }) => g && g.cost[state.cost] !== null && g.end[state.metric][0] !== null);
      const traces = points.map(({ m, g, place: where }) => {
        const [mean, error] = g.end[state.metric];
        return {
          x: [g.cost[state.cost]], y: [mean], text: [`${m + 1}`], textposition: "top center", mode: "markers+text",
          marker: {
            color: colour(m), size: 10, symbol: where === "dominated" ? "circle-open" : where === "open" ? "diamond" : "circle",
            line: { color: colour(m), width: 2 },
          },
          error_y: { type: "data", array: [error ?? 0], color: colour(m), thickness: 1, width: 0 },
          hovertemplate: `${at.methods[m]}: %{y}, ${cost(g.cost[state.cost])}${where ? `, ${where}` : ""}<extra></extra>`,
        };
      });
      const front = points.filter((p) => p.place === "front").map((p) => at.methods[p.m]);
      plot(charts[i], traces, {
        height: 270,
        xaxis: logarithmic(points.map(({ g }) => g.cost[state.cost]), titles[state.cost], cost), yaxis: { label: metric().title },
      }, `${metric().title} against ${titles[state.cost]} on ${at.data[d]}; on the front: ${front.join(", ") || "nobody for certain"}`);
    });
    const judged = metric().name in at.effects;
    $("front-note").textContent =
      "At the end of training, whatever is chosen above. Numbers are those of the list of methods. " +
      (judged
        ? "Filled circles: on the front, no chosen method that costs as much or less is as good; diamonds: open; hollow: dominated, by 95 % intervals of paired differences."
        : "No differences in this metric are judged here.");
  }

  function drawTraces(shown) {
    const kind = state.moment === "time" ? "time" : "steps";
    const x = moments(kind);
    const traced = metric().traced && x.length > 1;
    const charts = frames($("traces"), traced ? shown : []);
    $("traces-note").textContent = traced
      ? `Means over cells${kind === "time" ? " of the last looks up to a time" : ""}; bands: a standard error. Colours and dashes are those of the list of methods; a curve far from the better half leaves its chart.`
      : `No trace has ${metric().title}.`;
    if (!traced) return;
    shown.forEach((d, i) => {
      const traces = [];
      const last = [];
      const range = limits(d, kind);
      for (const m of methods()) {
        const points = group(d, m)?.[kind][state.metric];
        if (!points) continue;
        const known = x.map((at, j) => [at, ...points[j]]).filter(([, mean]) => mean !== null);
        if (!known.length) continue;
        const [xs, ys] = [known.map((p) => p[0]), known.map((p) => p[1])];
        const inside = range && ys.at(-1) >= range[0] && ys.at(-1) <= range[1];
        if (inside && known.some((p) => p[2])) {
          traces.push({
            x: [...xs, ...[...xs].reverse()],
            y: [...known.map((p) => p[1] + (p[2] ?? 0)), ...known.map((p) => p[1] - (p[2] ?? 0)).reverse()],
            fill: "toself", fillcolor: colour(m), opacity: 0.15, line: { width: 0 }, mode: "lines", hoverinfo: "skip",
          });
        }
        traces.push({
          x: xs, y: ys, mode: "lines",
          line: { color: colour(m), width: 2, dash: DASHES[m % DASHES.length] },
          hovertemplate: `${at.methods[m]}: %{y} at %{x}<extra></extra>`,
        });
        last.push([at.methods[m], ys.at(-1)]);
      }
      plot(charts[i], traces, {
        height: 270,
        xaxis: logarithmic(x, kind === "time" ? "seconds of training" : "iteration", (at) => digits(at, 3)),
        yaxis: { label: metric().title, range },
      }, `${metric().title} against ${kind === "time" ? "seconds" : "iterations"} on ${at.data[d]}; at the end: ${last.map(([n, y]) => `${n} ${digits(y)}`).join(", ")}`);
    });
  }

  // the better half of the curves whole: one that diverges spoils no chart
  function limits(d, kind) {
    const ends = methods().map((m) => group(d, m)?.[kind][state.metric]?.filter(([mean]) => mean !== null).map(([mean]) => mean))
      .filter((ys) => ys?.length)
      .sort((a, b) => loss(a.at(-1), metric().better) - loss(b.at(-1), metric().better));
    const best = ends.slice(0, Math.ceil(ends.length / 2)).flat();
    if (!best.length) return undefined;
    const [low, high] = [Math.min(...best), Math.max(...best)];
    const margin = 0.08 * (high - low || Math.abs(high) || 1);
    return [low - margin, high + margin];
  }

  function drawTable() {
    const heads = ["data set", "method", `${metric().title}, ${momentSays()}`, "splits", "failed", "FLOPs", "seconds", "front"];
    const numeric = [false, false, true, true, true, true, true, false];
    const cell = (tag, text, number, scope) => {
      const made = document.createElement(tag);
      made.textContent = text;
      if (number) made.className = "n";
      if (scope) made.scope = scope;
      return made;
    };
    const head = document.createElement("tr");
    head.append(...heads.map((text, i) => cell("th", text, numeric[i], "col")));
    const rows = data().flatMap((d) => methods().filter((m) => group(d, m)).map((m) => {
      const g = group(d, m);
      const where = place(d, m);
      const by = where.by.length ? `: ${where.by.map((r) => at.methods[r]).join(", ")}` : "";
      const texts = [
        at.data[d], at.methods[m], withError(score(g)), `${g.splits}`, g.failed ? `${g.failed} of ${g.n}` : "",
        cost(g.cost[0]), cost(g.cost[1]), `${where.place}${by}`,
      ];
      const row = document.createElement("tr");
      row.append(...texts.map((text, i) => cell(i ? "td" : "th", text, numeric[i], i ? "" : "row")));
      return row;
    }));
    $("table").tHead.replaceChildren(head);
    $("table").tBodies[0].replaceChildren(...rows);
    $("notes").replaceChildren(...at.notes.map((note) => {
      const item = document.createElement("li");
      item.textContent = note;
      return item;
    }));
  }

  function draw() {
    const found = averageRanks();
    drawRanks(found);
    const shown = data().slice(0, MOST_CHARTS);
    drawFront(shown);
    drawTraces(shown);
    drawTable();
    if (data().length > MOST_CHARTS) {
      const more = ` The first ${MOST_CHARTS} of ${data().length} data sets are drawn: choose fewer to see others.`;
      for (const id of ["front-note", "traces-note"]) $(id).textContent += more;
    }
    $("says").textContent =
      `${methods().length} of ${at.methods.length} methods on ${data().length} of ${at.data.length} data sets, ` +
      `${metric().title} on ${at.backends[state.backend]}, ${momentSays()}.`;
    document.title = `${at.name} · Explorer · svgpbench`;
  }

  // ---- controls -----------------------------------------------------------------------------------

  function options(select, texts, chosen) {
    select.replaceChildren(...texts.map((text, i) => new Option(text, i, false, i === chosen)));
    select.value = chosen;
  }

  function boxes(target, names, chosen, swatch) {
    target.replaceChildren(...names.map((name, i) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = chosen.has(i);
      box.addEventListener("change", () => {
        chosen[box.checked ? "add" : "delete"](i);
        changed();
      });
      label.append(box, ...(swatch ? [swatch(i)] : []), ` ${swatch ? `${i + 1} ` : ""}${name}`);
      return label;
    }));
  }

  function swatch(m) {
    const ns = "http://www.w3.org/2000/svg";
    const [svg, line] = [document.createElementNS(ns, "svg"), document.createElementNS(ns, "line")];
    for (const [k, v] of Object.entries({ viewBox: "0 0 26 6", width: 26, height: 6, "aria-hidden": "true", class: "swatch" })) {
      svg.setAttribute(k, v);
    }
    for (const [k, v] of Object.entries({
      x1: 0, x2: 26, y1: 3, y2: 3, stroke: colour(m), "stroke-width": 3, "stroke-dasharray": DASHED[m % DASHED.length],
    })) {
      line.setAttribute(k, v);
    }
    svg.append(line);
    return svg;
  }

  function fill() {
    $("experiment").value = at.name;
    options($("metric"), at.metrics.map((m) => m.title), state.metric);
    options($("backend"), at.backends, state.backend);
    $("cost").value = state.cost;
    boxes($("methods"), at.methods, state.methods, swatch);
    boxes($("data-sets"), at.data, state.data);
    for (const radio of document.getElementsByName("at")) {
      radio.checked = radio.value === state.moment;
      radio.disabled = radio.value !== "end" && !moments(radio.value).length;
    }
    slide();
  }

  function slide() {
    const kind = moments(state.moment);
    $("moment-row").hidden = !kind.length;
    if (!kind.length) return;
    if (state.index < 0) state.index = kind.length - 1;
    state.index = Math.min(state.index, kind.length - 1);
    $("moment").max = kind.length - 1;
    $("moment").value = state.index;
    $("moment").setAttribute("aria-valuetext", momentSays());
    $("moment-says").textContent = momentSays();
  }

  function changed() {
    slide();
    keep();
    draw();
  }

  $("experiment").addEventListener("change", () => {
    open(EXPERIMENTS.find((one) => one.name === $("experiment").value));
    fill();
    changed();
  });
  for (const key of ["metric", "backend", "cost"]) {
    $(key).addEventListener("change", () => { state[key] = Number($(key).value); changed(); });
  }
  for (const radio of document.getElementsByName("at")) {
    radio.addEventListener("change", () => {
      state.moment = radio.value;
      state.index = moments(radio.value).length - 1;
      changed();
    });
  }
  $("moment").addEventListener("input", () => { state.index = Number($("moment").value); changed(); });
  for (const button of document.querySelectorAll("[data-all], [data-none]")) {
    button.addEventListener("click", () => {
      const what = button.dataset.all ?? button.dataset.none;
      const names = at[what];
      state[what] = new Set(button.dataset.all ? names.keys() : []);
      fill();
      changed();
    });
  }
  $("choice").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", restore);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { fill(); draw(); });
  restore();
})();
