// A plan, live: what the question costs and gives, and the error that another price would buy.

import { draw, fill, find, icon, make, say } from "./dom.js";
import { digitsFor, decimals, epsilonText, exact, isLess, isZero } from "./exact.js";
import { many, minus, plain, rounded, short, toNumber } from "./exact.js";
import * as server from "./server.js";

const PATIENCE = { question: 350, report: 900 }; // milliseconds without a keystroke; the plan of a report takes longer
const STOPS = 300;
const DECADES = 3; // the slider reaches from a thousandth of the total to all of it
const [HEIGHT, TOP, SIDE] = [150, 24, 8]; // SIDE is half the thumb of the slider, so that the point stands above it

export class Plan {
  // `asked` is the form that is in use.
  constructor(asked, shown, revoked) {
    Object.assign(this, { form: asked, shown, revoked, timer: 0, sent: null, plan: null });
    this.price = find("epsilon");
    this.slider = find("slider");
    this.slider.addEventListener("input", () => {
      this.price.value = plain(rounded(this.at(Number(this.slider.value))));
      this.mark();
      this.soon();
    });
    this.price.addEventListener("input", () => {
      this.follow();
      this.soon();
    });
    find("size").addEventListener("input", () => this.soon());
    addEventListener("resize", () => {
      this.drawn = null;
      if (this.plan) this.mark();
    });
    find("curve-of").addEventListener("input", () => {
      this.drawn = null;
      this.mark();
    });
  }

  open(study) {
    this.study = study;
    this.plan = this.drawn = null;
    this.total = toNumber(exact(study.total));
    const left = toNumber(exact(study.left));
    this.price.value = plain(Number((Math.min(this.total, left || this.total) / 10).toPrecision(1)));
    find("size").value = "";
    fill(find("curve"));
    this.follow();
  }

  at(stop) {
    return this.total * 10 ** (DECADES * (stop / STOPS - 1));
  }

  // The slider goes where the number is.
  follow() {
    const number = Number(this.price.value);
    if (number > 0) this.slider.value = Math.round(STOPS * (1 + Math.log10(number / this.total) / DECADES));
    this.mark();
  }

  body() {
    const size = find("size").value.replaceAll(/[ ,]/g, "");
    return {
      study: this.study.name,
      ...this.form().fields(),
      epsilon: this.price.value.trim(),
      ...(/^[1-9]\d{0,17}$/.test(size) && !find("size-part").hidden ? { size: Number(size) } : {}),
    };
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
      this.plan = this.drawn = null;
      this.refuse(error);
    }
    find("plan").removeAttribute("aria-busy");
    this.shown(this.plan);
  }

  refuse(error) {
    say(find("plan-error"), error.words);
    say(find("plan-said"), "");
    fill(find("plan-lines"));
    fill(find("curve"));
    find("size-part").hidden = find("curve-part").hidden = true;
    find("release").disabled = true;
    find("release").textContent = "Release";
  }

  show() {
    const { plan } = this;
    const cost = exact(plan.cost);
    say(find("plan-error"), "");
    find("size-part").hidden = !plan.lines.some((line) => line.sized || line.size);
    this.offer();
    fill(find("plan-lines"), this.summary(cost), this.table(), ...this.remarks());
    const heard = plan.lines.map((line) => `${line.title ?? `${line.table}, ${line.column}`}: ${line.within}`).join(". ");
    say(find("plan-said"), `Plan: costs ε ${epsilonText(cost)}. ${heard}.`);
    find("release").disabled = false;
    find("release").textContent = isZero(cost) ? "Release, free" : `Release for ε ${epsilonText(cost)}`;
    this.drawn = null;
    this.mark();
  }

  get isReport() {
    return Boolean(this.plan?.measured);
  }

  summary(cost) {
    const left = exact(this.plan.remaining);
    const after = minus(left, cost);
    const tables = new Set(this.plan.lines.map(({ table }) => table)).size;
    const size = this.isReport ? many(tables, "table") : many(this.plan.cells, "row");
    const words = [size, isZero(cost) ? "free" : `ε ${epsilonText(cost)}`];
    if (isLess(left, cost)) words.push(`only ${epsilonText(left)} is left`);
    else words.push(`leaves ${epsilonText(after)}`);
    return make("p", { className: "summary" }, words.join(" · "));
  }

  table() {
    const level = Number((toNumber(exact(this.plan.confidence)) * 100).toPrecision(4));
    const together = this.isReport ? ["Table", `${level} % within`, "Asked one by one"] : ["Column", `${level} % within`];
    const heads = together.map((words) => make("th", { scope: "col" }, words));
    const error = (words) => make("td", {}, words.replaceAll("± ", "±\u00a0"));
    const noise = (line) => `Δ ${short(toNumber(exact(line.sensitivity)))} · scale ${short(toNumber(exact(line.scale)))}`;
    const name = (title, more) => make("th", { scope: "row" }, title, make("span", { className: "hint" }, more));
    const rows = this.plan.lines.map((line) =>
      this.isReport
        ? make("tr", {}, name(line.table, `${line.column} · ${many(line.rows, "row")}`), error(line.within), error(line.one_by_one))
        : make("tr", {}, name(line.title, noise(line)), error(line.within)),
    );
    const said = this.isReport ? "How near each number is, together and one by one" : "What each number costs in noise";
    const caption = make("caption", { className: "away" }, said);
    const head = make("thead", {}, make("tr", {}, ...heads));
    return make("table", { className: "lines" }, caption, head, make("tbody", {}, ...rows));
  }

  remarks() {
    const { warnings, notes } = this.plan;
    const warned = warnings.map((words) => make("p", { className: "warning" }, icon("warning"), words));
    return [...warned, notes.length ? make("p", { className: "hint" }, notes.join(" · ")) : null];
  }

  // The lines that have an error to draw.
  offer() {
    const { lines, curve } = this.plan;
    const drawable = lines.map((_, at) => at).filter((at) => curve.points.some(({ reach }) => reach?.[at] > 0));
    const chosen = find("curve-of");
    const before = chosen.value;
    fill(chosen, ...drawable.map((at) => make("option", { value: at }, lines[at].title)));
    if (drawable.map(String).includes(before)) chosen.value = before;
    find("curve-part").hidden = drawable.length < 2;
  }

  points() {
    const at = find("curve-of").value;
    if (this.plan === null || at === "") return [];
    return this.plan.curve.points.map(({ epsilon, reach }) => [epsilon, reach?.[at]]).filter(([, reach]) => reach > 0);
  }

  // The error at any price, between the points in even ratios.
  reach(points, epsilon) {
    const after = points.findIndex(([at]) => at >= epsilon);
    if (points.length < 2) return null;
    const [from, to] = after < 1 ? (after === 0 ? [0, 1] : [points.length - 2, points.length - 1]) : [after - 1, after];
    const [[x0, y0], [x1, y1]] = [points[from], points[to]];
    return y0 * (y1 / y0) ** (Math.log(epsilon / x0) / Math.log(x1 / x0));
  }

  // Move the point to the price; draw the curve first if it is not there.
  mark() {
    const points = this.points();
    const epsilon = Number(this.price.value);
    if (this.drawn === null || this.drawn === undefined) this.drawCurve(points);
    const line = this.plan?.lines[find("curve-of").value];
    const isPlanned = this.asked?.epsilon === this.price.value.trim(); // then the plan's own error, not the curve's
    const reach = epsilon > 0 ? ((isPlanned ? line?.reach : null) ?? this.reach(points, epsilon)) : null;
    const error = reach === null || !line ? "" : `${line.title} ± ${short(reach)}`;
    this.slider.setAttribute("aria-valuetext", error ? `ε ${this.price.value}: ${error}` : `ε ${this.price.value}`);
    if (!this.drawn?.scale || reach === null) return;
    const { x, y, width, dot, drop, label } = this.drawn;
    const [px, py] = [Math.min(width - SIDE, Math.max(SIDE, x(epsilon))), Math.max(TOP, y(reach))];
    dot.setAttribute("cx", px);
    dot.setAttribute("cy", py);
    drop.setAttribute("d", `M${px} ${py}V${HEIGHT}`);
    const right = px > width * 0.6;
    label.setAttribute("x", px + (right ? 6 : 12));
    label.setAttribute("y", Math.max(18, py - (right ? 22 : 8))); // off the line, which falls
    label.setAttribute("text-anchor", right ? "end" : "start");
    label.textContent = `± ${short(reach)}`;
  }

  drawCurve(points) {
    const place = find("curve");
    this.drawn = { scale: false };
    if (points.length < 2) {
      const ranked = "How near it will be depends on the data; the interval is released with the answer.";
      const free = "What is public is exact at any price, and free.";
      const why = () => make("p", { className: "hint" }, isZero(exact(this.plan.cost)) ? free : ranked);
      fill(place, this.plan === null || this.isReport ? null : why());
      return;
    }
    const reaches = points.map(([, reach]) => Math.log10(reach));
    const [low, high] = [Math.min(...reaches), Math.max(...reaches)];
    const width = place.clientWidth || 400;
    const x = (epsilon) => SIDE + (width - 2 * SIDE) * (1 + Math.log10(epsilon / this.total) / DECADES);
    const y = (reach) => TOP + (HEIGHT - TOP - 8) * (1 - (Math.log10(reach) - low) / Math.max(0.1, high - low));
    const line = this.plan.lines[find("curve-of").value];
    const left = toNumber(exact(this.study.left));
    const sized = line.sized ? ` at ${many(this.plan.curve.size, "row")}` : "";
    const title = `Error of ${line.title}${sized} over ε${left < this.total ? "; gray: more than is left" : ""}`;
    const path = `M${points.map(([epsilon, reach]) => `${x(epsilon).toFixed(1)} ${y(reach).toFixed(1)}`).join("L")}`;
    const beyond = left < this.total ? Math.max(SIDE, x(Math.max(left, this.total / 1000))) : null;
    const dot = draw("circle", { r: 7, class: "dot" });
    const drop = draw("path", { class: "drop" });
    const label = draw("text", { class: "dot-label" });
    const drawing = draw(
      "svg",
      { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title },
      ...ticks(low, high, y, width),
      ...(beyond === null ? [] : [shade(beyond, width - SIDE)]),
      draw("path", { d: path, class: "line" }),
      drop,
      dot,
      label,
    );
    this.drawn = { scale: true, x, y, width, dot, drop, label };
    fill(place, make("p", { className: "hint curve-title" }, title), drawing);
  }
}

const shade = (x, end) => draw("rect", { x, y: 0, width: end - x, height: HEIGHT, class: "beyond" });

// A line for each power of ten that the error passes.
function ticks(low, high, y, width) {
  const found = [];
  for (let power = Math.ceil(low); power <= high; power += 1) {
    const at = y(10 ** power).toFixed(1);
    const side = high - power > (high - low) / 2 ? { x: SIDE + 2 } : { x: width - SIDE - 4, "text-anchor": "end" }; // off the curve
    const words = draw("text", { ...side, y: at - 4, class: "tick" });
    words.textContent = `± ${power < 0 ? decimals(10 ** power, digitsFor(10 ** power, 1)) : short(10 ** power)}`;
    found.push(draw("path", { d: `M${SIDE} ${at}H${width - SIDE}`, class: "grid" }), words);
  }
  return found;
}
