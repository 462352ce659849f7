// The plan of the current question: its cost and errors, and the error at other prices.

import * as discovery from "./discovery.js";
import { draw, fill, find, icon, make, say } from "./dom.js";
import { digitsFor, decimals, epsilonText, exact, isLess, isZero } from "./exact.js";
import { many, minus, plain, rounded, short, toNumber } from "./exact.js";
import * as server from "./server.js";

const PATIENCE = { question: 350, report: 900 }; // milliseconds after the last keystroke; the plan of a report takes longer
const STOPS = 300;
const DECADES = 3; // the slider ranges from a thousandth of the share, or of the total, to all of it
const [HEIGHT, TOP, SIDE] = [150, 24, 8]; // SIDE is half the thumb of a slider, so that the point lines up with both thumbs

const ENDS = {
  question: ["less ε, larger error", "more ε, smaller error"],
  discovery: ["less ε, fewer keys", "more ε, more keys"],
};

export const REPEATED = "asked before: free while the data is the same";

export class Plan {
  // `asked` returns the form in use.
  constructor(asked, shown, revoked) {
    Object.assign(this, { form: asked, shown, revoked, timer: 0, sent: null, plan: null });
    [this.price, this.error] = [find("epsilon"), find("error")];
    [this.slider, this.errorSlider] = [find("slider"), find("error-slider")];
    const on = (field, work) => field.addEventListener("input", work);
    on(this.slider, () => this.turn("epsilon", plain(rounded(this.priceAt(Number(this.slider.value))))));
    on(this.errorSlider, () => this.turn("within", plain(rounded(this.reachAt(Number(this.errorSlider.value))))));
    on(this.price, () => this.turn("epsilon", this.price.value));
    on(this.error, () => this.turn("within", this.error.value));
    on(find("size"), () => this.soon());
    on(find("curve-of"), () => {
      this.drawn = null;
      this.turn("epsilon", this.price.value);
    });
    addEventListener("resize", () => {
      this.drawn = null;
      if (this.plan) this.mark();
    });
  }

  open(study) {
    this.study = study;
    this.plan = this.drawn = null;
    this.given = "epsilon";
    this.total = toNumber(exact(study.allotment ?? study.total)) || toNumber(exact(study.total));
    const left = toNumber(exact(study.left));
    this.price.value = plain(Number((Math.min(this.total, left || this.total) / 10).toPrecision(1)));
    find("size").value = this.error.value = "";
    fill(find("curve"));
    this.mark();
  }

  // The user sets the price, or the error of one number; the other follows.
  turn(given, text) {
    this.given = given;
    const field = given === "epsilon" ? this.price : this.error;
    if (field.value !== text) field.value = text;
    this.mark();
    this.soon();
  }

  priceAt(stop) {
    return this.total * 10 ** (DECADES * (stop / STOPS - 1));
  }

  stop(epsilon) {
    return Math.round(STOPS * (1 + Math.log10(epsilon / this.total) / DECADES));
  }

  // The range of the error slider is that of the curve.
  reachAt(stop) {
    const { low, high } = this.drawn;
    return 10 ** (low + ((high - low) * stop) / STOPS);
  }

  reachStop(reach) {
    const { low, high } = this.drawn;
    return between(0, Math.round((STOPS * (Math.log10(reach) - low)) / Math.max(1e-9, high - low)), STOPS);
  }

  get line() {
    return this.plan?.lines[find("curve-of").value];
  }

  body() {
    const fields = this.form().fields();
    const size = find("size").value.replaceAll(/[ ,]/g, "");
    const sized = /^[1-9]\d{0,17}$/.test(size) && !find("size-part").hidden ? { size: Number(size) } : {};
    const asked = { study: this.study.name, ...fields };
    if (this.given === "within" && this.line && fields.sql?.includes(this.line.title)) {
      const within = { [this.line.title]: this.error.value.trim() };
      return { ...asked, within, ...(this.line.sized ? { size: this.plan.curve.size, ...sized } : sized) };
    }
    this.given = "epsilon";
    return { ...asked, epsilon: this.price.value.trim(), ...(fields.columns ? {} : sized) };
  }

  soon() {
    clearTimeout(this.timer);
    find("plan").setAttribute("aria-busy", "true");
    find("release").disabled = true;
    this.timer = setTimeout(() => this.ask(), this.form().fields().tables ? PATIENCE.report : PATIENCE.question);
  }

  async ask() {
    this.sent?.abort();
    const sent = (this.sent = new AbortController());
    const body = this.body();
    try {
      const { problem } = this.form();
      if (problem) throw new server.Refusal(400, problem, "");
      const plan = await server.plan(body, sent.signal);
      if (sent !== this.sent) return;
      Object.assign(this, { plan, asked: body });
      this.show();
    } catch (error) {
      if (error.name === "AbortError" || sent !== this.sent) return;
      if (!(error instanceof server.Refusal)) throw error;
      if (error.status === 401) {
        this.revoked();
        return;
      }
      if (!this.isTry(error)) this.plan = this.drawn = null;
      this.refuse(error);
    }
    find("plan").removeAttribute("aria-busy");
    this.shown(this.plan);
  }

  // Whether only the requested error is impossible, so that another can be tried.
  isTry(refusal) {
    return this.given === "within" && this.plan !== null && /^(within|epsilon) /.test(refusal.message);
  }

  refuse(error) {
    const here = this.study.discovers ? "choose “Discover keys”" : "ask the custodian to discover them";
    say(find("plan-error"), error.words.replace(/discover its keys first: study\.discover\(.*?…\)/, here));
    say(find("plan-said"), "");
    fill(find("plan-lines"));
    if (!this.isTry(error)) {
      this.unscale();
      find("size-part").hidden = find("curve-part").hidden = true;
    }
    find("release").disabled = true;
    find("release").textContent = "Release";
  }

  show() {
    const { plan } = this;
    const cost = exact(plan.cost);
    say(find("plan-error"), "");
    find("size-part").hidden = !plan.lines.some((line) => line.sized || line.size);
    this.offer();
    [find("cheap").textContent, find("dear").textContent] = ENDS[this.isDiscovery ? "discovery" : "question"];
    fill(find("plan-lines"), this.summary(cost), this.isDiscovery ? null : this.table(), ...this.remarks());
    const lines = plan.lines.map((line) => `${line.title ?? `${line.table}, ${line.column}`}: ${line.within}.`);
    const heard = [`Plan: costs ε ${epsilonText(cost)}.`, ...(plan.asked_before ? [`${REPEATED}.`] : []), ...lines];
    say(find("plan-said"), [...heard, ...(this.isDiscovery ? discovery.notes(plan, this.study.unit) : [])].join(" "));
    const word = this.isDiscovery ? "Discover" : "Release";
    const price = isZero(cost) ? ", free" : plan.asked_before ? " again" : ` for ε ${epsilonText(cost)}`;
    find("release").disabled = false;
    find("release").textContent = word + price;
    this.drawn = null;
    this.mark();
  }

  get isReport() {
    return Boolean(this.plan?.measured);
  }

  get isDiscovery() {
    return Boolean(this.plan?.meaning);
  }

  summary(cost) {
    const left = exact(this.plan.remaining);
    const after = minus(left, cost);
    const tables = new Set(this.plan.lines.map(({ table }) => table)).size;
    const size = this.isReport ? many(tables, "table") : many(this.plan.cells ?? 0, "row");
    const words = [...(this.isDiscovery ? [] : [size]), isZero(cost) ? "free" : `ε ${epsilonText(cost)}`];
    if (this.isDiscovery) words.push("all of δ");
    if (this.plan.asked_before) words.push(REPEATED);
    else if (isLess(left, cost)) words.push(`only ε ${epsilonText(left)} is left`);
    else words.push(`leaves ε ${epsilonText(after)}`);
    return make("p", { className: "summary" }, words.join(" · "));
  }

  table() {
    const level = Number((toNumber(exact(this.plan.confidence)) * 100).toPrecision(4));
    const together = this.isReport ? ["Table", `Error (${level} %)`, "Asked one by one"] : ["Column", `Error (${level} %)`];
    const heads = together.map((words) => make("th", { scope: "col" }, words));
    const error = (words) => make("td", {}, words.replaceAll("± ", "±\u00a0"));
    const noise = (line) => `Δ ${short(toNumber(exact(line.sensitivity)))} · scale ${short(toNumber(exact(line.scale)))}`;
    const name = (title, more) => make("th", { scope: "row" }, title, make("span", { className: "hint" }, more));
    const rows = this.plan.lines.map((line) =>
      this.isReport
        ? make("tr", {}, name(line.table, `${line.column} · ${many(line.rows, "row")}`), error(line.within), error(line.one_by_one))
        : make("tr", {}, name(line.title, noise(line)), error(line.within)),
    );
    const said = this.isReport ? "The error of each number, together and one by one" : "The noise of each number";
    const caption = make("caption", { className: "away" }, said);
    const head = make("thead", {}, make("tr", {}, ...heads));
    return make("table", { className: "lines" }, caption, head, make("tbody", {}, ...rows));
  }

  remarks() {
    const { warnings, notes } = this.plan;
    if (this.isDiscovery) return discovery.notes(this.plan, this.study.unit).map((words) => make("p", { className: "note" }, words));
    const warned = warnings.map((words) => make("p", { className: "warning" }, icon("warning"), words));
    return [...warned, notes.length ? make("p", { className: "hint" }, notes.join(" ")) : null];
  }

  // Offer the lines that have an error to draw.
  offer() {
    const { lines, curve } = this.plan;
    const drawable = lines.map((_, index) => index).filter((index) => curve.points.some(({ reach }) => reach?.[index] > 0));
    const chosen = find("curve-of");
    const before = chosen.value;
    fill(chosen, ...drawable.map((index) => make("option", { value: index }, lines[index].title)));
    if (drawable.map(String).includes(before)) chosen.value = before;
    find("curve-part").hidden = drawable.length < 2;
  }

  points() {
    const index = find("curve-of").value;
    if (this.plan === null || index === "") return [];
    return this.plan.curve.points.map(({ epsilon, reach }) => [epsilon, reach?.[index]]).filter(([, reach]) => reach > 0);
  }

  // The other coordinate of a point on the curve, which is a straight line between its points on logarithmic axes.
  onCurve(points, value, axis, other) {
    if (points.length < 2 || !(value > 0)) return null;
    const beyond = points.findIndex((point) => (axis === 0 ? point[0] >= value : point[1] <= value));
    const to = beyond < 0 ? points.length - 1 : Math.max(1, beyond);
    const [from, next] = [points[to - 1], points[to]];
    if (from[axis] === next[axis]) return from[other];
    return from[other] * (next[other] / from[other]) ** (Math.log(value / from[axis]) / Math.log(next[axis] / from[axis]));
  }

  // The current price and error: from the plan, or from the curve until the plan arrives.
  point(points) {
    const { line } = this;
    if (this.given === "within") {
      const reach = Number(this.error.value);
      const isPlanned = this.asked?.within?.[line?.title] === this.error.value.trim();
      return [isPlanned ? toNumber(exact(this.plan.epsilon)) : this.onCurve(points, reach, 1, 0), reach];
    }
    const epsilon = Number(this.price.value);
    const isPlanned = this.asked?.epsilon === this.price.value.trim();
    return [epsilon, (isPlanned ? line?.reach : null) ?? this.onCurve(points, epsilon, 0, 1)];
  }

  // Move the point, both sliders and the dependent field; draw the curve first if needed.
  mark() {
    const points = this.points();
    if (this.drawn === null || this.drawn === undefined) this.drawCurve(points);
    const { line } = this;
    const [epsilon, reach] = this.point(points);
    if (this.given === "within" && epsilon > 0) this.price.value = plain(Number(epsilon.toPrecision(6)));
    if (epsilon > 0) this.slider.value = this.stop(epsilon);
    const hasError = Boolean(line) && reach !== null && reach >= 0; // at a high price it may be 0
    const price = `ε ${this.price.value}`;
    this.slider.setAttribute("aria-valuetext", hasError ? `${price}: ${line.title} ± ${short(reach)}` : price);
    if (!this.drawn.scale || !hasError || !(epsilon > 0)) return;
    if (this.given === "epsilon") this.error.value = plain(reach < 100 ? Number(reach.toPrecision(3)) : Math.round(reach));
    this.errorSlider.value = this.reachStop(reach);
    this.errorSlider.setAttribute("aria-valuetext", `${line.title} ± ${short(reach)}: ${price}`);
    const { x, y, width, marks, dot, drop, label } = this.drawn;
    const [px, py] = [between(SIDE, x(epsilon), width - SIDE), between(TOP, y(reach), HEIGHT - SIDE)];
    marks.setAttribute("visibility", "visible");
    dot.setAttribute("cx", px);
    dot.setAttribute("cy", py);
    drop.setAttribute("d", `M0 ${py}H${px}V${HEIGHT}`);
    const right = px > width * 0.6;
    label.setAttribute("x", right ? Math.min(px + 6, width - 6) : px + 12);
    label.setAttribute("y", Math.max(22, py - (right ? 22 : 8))); // away from the falling line
    label.setAttribute("text-anchor", right ? "end" : "start");
    label.textContent = `± ${short(reach)}`;
  }

  // Without a curve, no error can be chosen.
  unscale(words = null) {
    this.drawn = { scale: false };
    for (const id of ["error-part", "error-slider", "curve-title"]) find(id).hidden = true;
    fill(find("curve"), words === null ? null : make("p", { className: "hint" }, words));
  }

  drawCurve(points) {
    const place = find("curve");
    const isFree = this.plan !== null && isZero(exact(this.plan.cost));
    if (points.length < 2 || isFree) {
      const ranked = "The error depends on the data; the interval is released with the answer.";
      const free = points.length < 2 ? "Public numbers are exact and free." : "This is free at any price.";
      this.unscale(this.plan === null || this.isReport || this.isDiscovery ? null : isFree ? free : ranked);
      return;
    }
    const { line } = this;
    for (const id of ["error-part", "error-slider"]) find(id).hidden = !this.plan.columns.includes(line.title);
    find("curve-title").hidden = false;
    const reaches = points.map(([, reach]) => Math.log10(reach));
    const [low, high] = [Math.min(...reaches), Math.max(...reaches)];
    const width = place.clientWidth || 400;
    const x = (epsilon) => SIDE + (width - 2 * SIDE) * (1 + Math.log10(epsilon / this.total) / DECADES);
    const y = (reach) => TOP + (HEIGHT - TOP - SIDE) * (1 - (Math.log10(reach) - low) / Math.max(0.1, high - low));
    const left = toNumber(exact(this.study.left));
    const sized = line.sized ? ` at ${many(this.plan.curve.size, "row")}` : "";
    const words = `of ${line.title}${sized} over ε${left < this.total ? "; gray: more ε than is left" : ""}`;
    const path = `M${points.map(([epsilon, reach]) => `${x(epsilon).toFixed(1)} ${y(reach).toFixed(1)}`).join("L")}`;
    const beyond = left < this.total ? Math.max(SIDE, x(Math.max(left, this.total / 1000))) : null;
    const dot = draw("circle", { r: 7, class: "dot" });
    const drop = draw("path", { class: "drop" });
    const label = draw("text", { class: "dot-label" });
    const marks = draw("g", { visibility: "hidden" }, drop, dot, label); // until there are a price and an error
    const drawing = draw(
      "svg",
      { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `Error ${words}` },
      ...ticks(low, high, y, width),
      ...(beyond === null ? [] : [shade(beyond, width - SIDE)]),
      draw("path", { d: path, class: "line" }),
      marks,
    );
    this.drawn = { scale: true, x, y, low, high, width, marks, dot, drop, label };
    find("curve-words").textContent = words;
    fill(place, drawing);
  }
}

const between = (least, value, most) => Math.min(most, Math.max(least, value));
const shade = (x, end) => draw("rect", { x, y: 0, width: end - x, height: HEIGHT, class: "beyond" });

// A grid line for each power of ten in the range of the error.
function ticks(low, high, y, width) {
  const lines = [];
  for (let power = Math.ceil(low); power <= high; power += 1) {
    const height = y(10 ** power).toFixed(1);
    const side = high - power > (high - low) / 2 ? { x: SIDE + 2 } : { x: width - SIDE - 4, "text-anchor": "end" }; // away from the curve
    const words = draw("text", { ...side, y: height - 4, class: "tick" });
    words.textContent = `± ${power < 0 ? decimals(10 ** power, digitsFor(10 ** power, 1)) : short(10 ** power)}`;
    lines.push(draw("path", { d: `M${SIDE} ${height}H${width - SIDE}`, class: "grid" }), words);
  }
  return lines;
}
