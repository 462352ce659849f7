"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const M = { left: 52, right: 14, top: 28, bottom: 40 };
const sliders = Object.fromEntries(["epsilon", "delta", "people", "times", "draws"].map((name) => [name, byId(name)]));

/** A number with three significant digits, without an exponent. */
function short(value) {
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  return size >= 2 ? Math.round(value).toLocaleString("en") : value.toFixed(Math.min(12, 2 - size));
}
const scaleOf = (law) => String(Number(law.scale.toPrecision(4)));
const DENSITIES = ["blue", "vermilion", "green", "purple"];
const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** The parts of a formula such as "e^{2*ε*}": text, raised text, and whether its runs are italic. */
function parts(formula) {
  return formula.split(/(\^\{[^}]*\})/).map((part) => {
    const raised = part.startsWith("^{");
    const runs = (raised ? part.slice(2, -1) : part).split(/(\*[^*]+\*)/).filter(Boolean);
    return { raised, runs: runs.map((run) => ({ italic: run.startsWith("*"), text: run.replaceAll("*", "") })) };
  });
}

/** A formula without typesetting, as in e^(−ε). */
const plain = (formula) => formula.replaceAll("*", "").replace(/\^\{([^}]*)\}/g, (_, power) => (power.length > 1 ? `^(${power})` : `^${power}`));

/** Set a formula as the content of an element of HTML. */
function typeset(parent, formula) {
  parent.replaceChildren(...parts(formula).flatMap(({ raised, runs }) => {
    const nodes = runs.map(({ italic, text }) => (italic ? Object.assign(document.createElement("i"), { textContent: text }) : text));
    if (!raised) return nodes;
    const above = document.createElement("sup");
    above.append(...nodes);
    return [above];
  }));
}

function element(parent, name, attributes, formula = "") {
  const child = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) child.setAttribute(key, value);
  parent.append(child);
  let height = 0;
  for (const { raised, runs } of parts(formula)) for (const { italic, text } of runs) {
    const part = document.createElementNS(SVG, "tspan"), wanted = raised ? -5 : 0;
    if (wanted !== height) part.setAttribute("dy", wanted - height);
    if (raised) part.setAttribute("class", "raised");
    if (italic) part.setAttribute("font-style", "italic");
    height = wanted;
    part.textContent = text;
    child.append(part);
  }
  return child;
}

/** An empty chart with axes, and the functions from data to pixels. */
function axes(id, { x, y, xTicks, yTicks, xTitle, yTitle, logX = false, logY = false }) {
  const svg = byId(id);
  svg.replaceChildren();
  const width = svg.clientWidth, height = svg.clientHeight;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const along = (log, [first, last], from, to) => {
    const f = log ? Math.log : Number;
    return (value) => from + ((f(value) - f(first)) / (f(last) - f(first))) * (to - from);
  };
  const X = along(logX, x, M.left, width - M.right), Y = along(logY, y, height - M.bottom, M.top);
  for (const [value, name] of yTicks) {
    element(svg, "line", { class: "grid", x1: M.left, x2: width - M.right, y1: Y(value), y2: Y(value) });
    element(svg, "text", { x: M.left - 8, y: Y(value) + 4, "text-anchor": "end" }, name);
  }
  const room = Math.ceil((xTicks.length * 46) / (width - M.left - M.right));
  xTicks.filter((_, index) => index % room === 0).forEach(([value, name]) => {
    element(svg, "line", { class: "axis", x1: X(value), x2: X(value), y1: height - M.bottom, y2: height - M.bottom + 5 });
    element(svg, "text", { x: X(value), y: height - M.bottom + 18, "text-anchor": "middle" }, name.replace("-", "−"));
  });
  element(svg, "line", { class: "axis", x1: M.left, x2: width - M.right, y1: height - M.bottom, y2: height - M.bottom });
  element(svg, "text", { x: (M.left + width - M.right) / 2, y: height - 6, "text-anchor": "middle" }, xTitle);
  element(svg, "text", { x: 0, y: 12 }, yTitle);
  return { svg, X, Y, width, height };
}

function line(chart, points, look) {
  const path = points.map(([x, y], index) => `${index ? "L" : "M"}${chart.X(x).toFixed(2)} ${chart.Y(y).toFixed(2)}`).join("");
  element(chart.svg, "path", { class: look, d: path });
}

const dot = (chart, x, y, look, r = 6) => element(chart.svg, "circle", { class: look, cx: chart.X(x), cy: chart.Y(y), r });

function square(chart, x, y, look) {
  element(chart.svg, "rect", { class: look, x: chart.X(x) - 3.5, y: chart.Y(y) - 3.5, width: 7, height: 7 });
}

/** Round steps up to a largest value. */
function steps(largest) {
  const size = 10 ** Math.floor(Math.log10(largest / 2));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((width) => largest / width <= 5);
  return Array.from({ length: Math.floor(largest / step) + 1 }, (_, index) => [index * step, String(Number(short(index * step)))]);
}

function powers(first, last) {
  const ticks = [];
  for (let power = Math.ceil(Math.log10(first) - 1e-9); power <= Math.log10(last) + 1e-9; power += 1) ticks.push(power);
  const every = Math.ceil(ticks.length / 6);
  return ticks.filter((_, index) => index % every === 0).map((power) => {
    const value = 10 ** power, raised = [..."⁰¹²³⁴⁵⁶⁷⁸⁹"][Math.abs(power)];
    return [value, power >= 6 ? `${value / 1e6}M` : power >= 3 ? `${value / 1e3}k` : power >= 0 ? `${value}` : power > -3 ? value.toFixed(-power) : `10⁻${raised}`];
  });
}

function describe(id, formula) {
  typeset(byId(`said-${id}`), formula);
  byId(id).setAttribute("aria-label", plain(formula));
}

function drawLaw(now) {
  const { law, delta, epsilon } = now, [first, last] = data.window;
  const outputs = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const before = (y) => law.chances[Math.abs(y)], after = (y) => law.chances[Math.abs(y - delta)];
  const ratio = (y) => law.ratios[Math.abs(y - delta) - Math.abs(y) + delta];
  const xTicks = outputs.filter((y) => y % 5 === 0).map((y) => [y, String(y)]);
  const span = { x: [first - 0.5, last + 0.5], xTicks, xTitle: "published number *y*" };
  const top = law.chances[0] * 1.08;
  const curves = axes("curves", { ...span, y: [0, top], yTicks: steps(top), yTitle: "probability" });
  line(curves, outputs.map((y) => [y, before(y)]), "blue thin");
  line(curves, outputs.map((y) => [y, after(y)]), "vermilion thin");
  outputs.forEach((y) => { dot(curves, y, before(y), "blue", 3.5); square(curves, y, after(y), "vermilion"); });
  describe("curves", `At *ε* = ${epsilon.text} and *Δ* = ${delta} the noise scale is *λ* = *Δ*/*ε* = ${scaleOf(law)}. Replacing one person shifts the distribution by ${delta}. The exact number itself is published with probability ${percent(law.chances[0])}.`);
  const high = law.ratios.at(-1), low = law.ratios[0], far = high ** 1.5;
  const ratios = axes("ratio", { ...span, y: [1 / far, far], logY: true, yTitle: "ratio (logarithmic axis)", yTicks: [[high, short(high)], [1, "1"], [low, short(low)]] });
  for (const limit of [high, low]) element(ratios.svg, "line", { class: "limit", x1: M.left, x2: ratios.width - M.right, y1: ratios.Y(limit), y2: ratios.Y(limit) });
  line(ratios, outputs.map((y) => [y, ratio(y)]), "green thin");
  outputs.forEach((y) => dot(ratios, y, ratio(y), "green", 3));
  element(ratios.svg, "text", { x: ratios.width - M.right - 4, y: ratios.Y(high) - 6, "text-anchor": "end" }, `e^{*ε*} = ${short(high)}`);
  element(ratios.svg, "text", { x: M.left + 4, y: ratios.Y(low) - 6 }, `e^{−*ε*} = ${short(low)}`);
  describe("ratio", `No published number is more than e^{*ε*} = ${short(high)} times as likely from one data set as from the other. That is *ε*-differential privacy.`);
  byId("chances").replaceChildren(...outputs.filter((y) => y >= -5 && y <= delta + 5).map((y) => {
    const row = document.createElement("tr");
    for (const cell of [y, before(y), after(y), ratio(y)]) row.append(Object.assign(document.createElement("td"), { textContent: String(cell).replace("-", "−") }));
    return row;
  }));
}

function drawAttacker({ law, delta, epsilon }) {
  const last = data.epsilons.at(-1).value;
  const whole = Array.from({ length: Math.floor(last) + 1 }, (_, value) => [value, String(value)]);
  const chart = axes("attacker", { x: [0, last], y: [0.45, 1.02], xTicks: whole, xTitle: "*ε*", yTitle: "right guesses", yTicks: [0.5, 0.6, 0.7, 0.8, 0.9, 1].map((share) => [share, `${Math.round(share * 100)} %`]) });
  element(chart.svg, "line", { class: "limit", x1: M.left, x2: chart.width - M.right, y1: chart.Y(0.5), y2: chart.Y(0.5) });
  element(chart.svg, "text", { x: chart.width - M.right - 4, y: chart.Y(0.5) - 6, "text-anchor": "end" }, "coin flip");
  line(chart, [[0, 0.5], ...data.epsilons.map((each) => [each.value, each.limit])], "blue");
  line(chart, [[0, 0.5], ...data.epsilons.map((each) => [each.value, each.valueLimit])], "vermilion");
  square(chart, epsilon.value, epsilon.valueLimit, "vermilion");
  dot(chart, epsilon.value, law.attacker, "own");
  const limit = delta === 1 ? "This is the limit" : `The limit for any mechanism is ${percent(epsilon.limit)} =`;
  describe("attacker", `An attacker who knows everyone else guesses which data set it was. The best guess is right in ${percent(law.attacker)} of all trials (the large dot). ${limit} e^{*ε*}/(1+e^{*ε*}). It holds under change-one, and under add-remove for whether a person is in the data. For a fact about a person’s value, add-remove allows e^{2*ε*}/(1+e^{2*ε*}) = ${percent(epsilon.valueLimit)}: another value is two steps away. A coin flip is right in 50 %; without noise, the attacker is right in 100 %.`);
}

/** Figure 1 of the texts: the densities of several scales; each is that of Lap(1), stretched. */
function drawDensities({ law }) {
  const { scales, reach, units, heights } = data.density;
  const ticks = [-10, -5, 0, 5, 10].map((y) => [y, String(y)]), top = Math.max(0.5, 0.5 / law.scale) * 1.06;
  const chart = axes("densities", { x: [-reach, reach], y: [0, top], xTicks: ticks, yTicks: steps(top), xTitle: "noise *y*", yTitle: "density" });
  const wide = chart.width - M.left - M.right;
  const svg = element(chart.svg, "svg", { class: "inner", x: M.left, y: 0, width: wide, height: chart.height, viewBox: `${M.left} 0 ${wide} ${chart.height}` });
  const curve = (scale, look) => {
    const right = units.map((unit, index) => [unit * scale, heights[index] / scale]);
    const inside = right.filter((_, index) => index === 0 || right[index - 1][0] < reach);
    line({ ...chart, svg }, [...inside.slice(1).reverse().map(([y, height]) => [-y, height]), ...inside], look);
  };
  scales.forEach((scale, index) => curve(scale, DENSITIES[index]));
  curve(law.scale, "yours");
  describe("densities", `Lap(*λ*) for *λ* = ${scales.slice(0, -1).join(", ")} and ${scales.at(-1)}, as in Figure 1 of the texts, and for your *λ* = ${scaleOf(law)}: the thick curve. Twice the scale is twice as wide and half as high. The mean absolute error is *λ*, and the standard deviation is √2·*λ* = ${short(Math.SQRT2 * law.scale)}.`);
}

/** Lemma 1.4: the bound on the largest of d errors, and its exact probability. */
function drawLemma({ law, time, draw: which }) {
  const { times, draws, logs, bound, exact, largest, largestBound } = data.lemma, d = draws[which], t = times[time];
  const many = d.toLocaleString("en"), last = times.at(-1);
  const chart = axes("lemma", { x: [0, last], y: [bound.at(-1) / 2, 1.3], logY: true, xTicks: [0, 1, 2, 3, 4, 5, 6, 7, 8].map((value) => [value, String(value)]), yTicks: [1, 0.1, 0.01, 0.001].map((value) => [value, String(value)]), xTitle: "*t*", yTitle: "probability (logarithmic axis)" });
  line(chart, times.map((each, index) => [each, bound[index]]), "blue");
  line(chart, times.map((each, index) => [each, exact[which][index]]), "vermilion");
  dot(chart, t, bound[time], "blue");
  square(chart, t, exact[which][time], "vermilion");
  const at = law.scale * (logs[which] + t), name = d === 1 ? "|*Z*|" : "*M*";
  const event = d === 1 ? `P(|*Z*| > *tλ*)` : `P(*M* > *λ*(ln *d* + *t*))`;
  const same = d === 1 ? " For one number the bound is exact." : "";
  describe("lemma", `${d === 1 ? "One number" : `The largest of ${many} errors, *M*,`} at *λ* = ${scaleOf(law)}: ${event}, the probability that ${name} exceeds ${short(at)}, is at most e^{−*t*} = ${short(bound[time])}. It is exactly ${short(exact[which][time])}.${same} On average ${name} is ${short(law.scale * largest[which])}, and at most ${d === 1 ? "*λ*" : "*λ*(ln *d* + 1)"} = ${short(law.scale * largestBound[which])}.`);
}

/** Curves over the number of people, on logarithmic axes. */
function againstPeople(id, now, curves, looks, title, useless) {
  const people = data.people;
  const ends = [10 ** Math.floor(Math.log10(data.least[id])), 10 ** Math.ceil(Math.log10(data.most[id]))];
  const chart = axes(id, { x: [people[0], people.at(-1)], y: ends, logX: true, logY: true, xTicks: powers(people[0], people.at(-1)), yTicks: powers(...ends), xTitle: "number of people *n* (logarithmic axis)", yTitle: title });
  if (useless && useless < ends[1]) {
    element(chart.svg, "rect", { class: "zone", x: M.left, y: M.top, width: chart.width - M.left - M.right, height: chart.Y(useless) - M.top });
    element(chart.svg, "text", { x: chart.width - M.right - 4, y: M.top + 14, "text-anchor": "end" }, "wider than the bounds");
  }
  curves.forEach((curve, index) => {
    line(chart, curve.map((value, count) => [people[count], value]), looks[index]);
    dot(chart, people[now.count], curve[now.count], index ? "vermilion" : "own");
  });
}

function drawErrors(now) {
  const { index, count, epsilon, delta } = now, n = data.people[count].toLocaleString("en");
  const mean = data.mean[index][now.shift], laplace = data.laplace[index], response = data.response[index];
  againstPeople("mean", now, [mean], ["blue"], "± at 95 % (logarithmic axis)", delta);
  const verdict = mean[count] >= delta ? "This is useless: the interval is wider than the public bounds." : "";
  describe("mean", `At *ε* = ${epsilon.text}, the mean of ${n} numbers between 0 and *Δ* = ${delta} has an error of at most ± ${short(mean[count])} with probability 95 %: one person moves their sum by at most *Δ*, and the mean by *Δ*/*n*. ${verdict}`.trim());
  againstPeople("response", now, [laplace, response], ["blue", "vermilion"], "root mean square error (logarithmic axis)", 0);
  describe("response", `The fraction of ${n} people who say yes has a root mean square error of ${short(laplace[count])} with the Laplace mechanism, and of ${short(response[count])} with randomized response, where everyone adds noise to their own answer: √(*n*/2) = ${short(response[count] / laplace[count])} times as much.`);
}

function draw() {
  const [index, shift, count, time, draws] = Object.values(sliders).map((slider) => Number(slider.value));
  const now = { index, shift, count, time, draw: draws, epsilon: data.epsilons[index], delta: data.deltas[shift], law: data.laws[index][shift] };
  const whole = (number) => number.toLocaleString("en");
  const shown = { epsilon: now.epsilon.text, delta: String(now.delta), people: whole(data.people[count]), times: String(data.lemma.times[time]), draws: whole(data.lemma.draws[draws]) };
  for (const [name, text] of Object.entries(shown)) {
    byId(`${name}-shown`).textContent = text;
    sliders[name].setAttribute("aria-valuetext", text);
  }
  drawLaw(now);
  drawAttacker(now);
  drawDensities(now);
  drawLemma(now);
  drawErrors(now);
  return now;
}

const counts = { epsilon: data.epsilons.length, delta: data.deltas.length, people: data.people.length, times: data.lemma.times.length, draws: data.lemma.draws.length };
for (const [name, slider] of Object.entries(sliders)) {
  slider.max = counts[name] - 1;
  slider.value = data.start[name];
  slider.addEventListener("input", () => {
    const { law, index, shift, count, time, draw: draws } = draw(), { bound, exact } = data.lemma;
    byId("said").textContent = name === "times" || name === "draws"
      ? `Bound ${short(bound[time])}. Exactly ${short(exact[draws][time])}.`
      : `Scale ${scaleOf(law)}. Attacker right in ${percent(law.attacker)}. Error of the mean: plus or minus ${short(data.mean[index][shift][count])}.`;
  });
}
addEventListener("resize", draw);
draw();
