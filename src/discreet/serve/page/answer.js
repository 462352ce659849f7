// An answer: its numbers with their intervals, drawn and in a table. Sorting and finding cost nothing.

import { draw, fill, icon, make } from "./dom.js";
import { decimals, digitsFor, epsilonText, exact, many, rounding, short, toNumber } from "./exact.js";
import * as server from "./server.js";
import { FORMATS } from "./statistics.js"; // made by the server

const PAGE = 50; // rows at first
const MOST_BARS = 30; // a chart of more says less than the table
const MOST_PANELS = 12; // of two group columns, one chart for each key of the one
const MOST_DRAWN = 300; // rows of a picture, which the server draws
const NAMES = { png: "Chart (PNG)", csv: "CSV", xlsx: "XLSX", json: "JSON", parquet: "Parquet" };

// Columns of an answer: the keys of its groups, and its numbers with their ends.
function columnsOf(answer) {
  const groups = new Set(answer.view.groups.map(({ name }) => name));
  const dates = new Set(answer.view.groups.filter(({ kind }) => kind === "date").map(({ name }) => name));
  return answer.view.outputs.map(([name, output]) => ({
    name,
    isKey: output.name !== undefined && groups.has(output.name),
    value: dates.has(output.name) ? answer.table[name].map((day) => day?.replace(/T00:00:00$/, "") ?? null) : answer.table[name],
    low: answer.table[`${name}_low`],
    high: answer.table[`${name}_high`],
  }));
}

// All tables of a report, each as an answer.
export function showReport(place, report, { said, failed }) {
  const parts = Object.entries(report.tables).map(([table, answer]) => {
    const part = make("section", { className: "table-answer", "aria-label": table });
    show(part, answer, { said: null, failed, table });
    part.prepend(make("h3", {}, table));
    return part;
  });
  fill(place, make("p", { className: "summary" }, said), ...parts);
}

let count = 0; // of answers that were shown, so that each field has an id of its own

export function show(place, answer, { said, failed, edit = null, table = null }) {
  count += 1;
  const columns = columnsOf(answer);
  const numbers = columns.filter(({ isKey }) => !isKey);
  const rows = columns[0]?.value.length ?? 0;
  const level = Number((toNumber(exact(answer.record.confidence)) * 100).toPrecision(4));
  const told = said === null ? null : make("p", { className: "summary" }, said);
  const isDrawn = numbers.length > 0 && rows <= MOST_DRAWN;
  const formats = Object.entries(NAMES).filter(([format]) => FORMATS.includes(format) && (format !== "png" || isDrawn));
  const savers = formats.map(([format, words]) => saver(answer, table, format, words, failed));
  const of = table === null ? "" : ` ${table}`;
  const save = make("div", { className: "buttons", role: "group", "aria-label": `Download${of}` }, ...savers);
  const asked = answer.view.sql ? typed(answer.view.sql, edit) : null;
  if (rows === 1 && columns.every(({ isKey }) => !isKey)) {
    fill(place, told, asked, make("dl", { className: "tiles" }, ...numbers.map((column) => tile(column, level))), save);
    return;
  }
  const chart = rows > 1 && numbers.length ? figure(columns, numbers, rows, level) : null;
  fill(place, told, asked, chart, new Table(columns, rows, level, of).element, save);
}

// The question as it was typed, where the server keeps it.
function typed(sql, edit) {
  const told = { type: "button", className: "quiet", on: { click: () => edit(sql) } };
  const change = edit === null ? null : make("button", told, "Edit this question");
  return make("div", { className: "typed" }, make("pre", {}, make("code", {}, sql)), change);
}

function saver(answer, table, format, words, failed) {
  const name = table ?? answer.id.split(":").pop().slice(0, 8);
  const work = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      const address = URL.createObjectURL(await server.file(answer.id, table, format));
      make("a", { href: address, download: `${answer.study}-${name}.${format}` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      failed(error);
    } finally {
      button.disabled = false;
      button.focus();
    }
  };
  return make("button", { type: "button", className: "quiet", on: { click: work } }, icon("save"), words);
}

// A number with the digits that its error leaves it.
function parts(value, low, high) {
  if (value === null || value === undefined) return { text: "—", error: "" };
  if (low === null || high === null || low === undefined) return { text: short(value), error: "" };
  const isWhole = Number.isInteger(value) && Number.isInteger(low) && Number.isInteger(high);
  const digits = isWhole ? 0 : digitsFor(Math.max(value - low, high - value));
  const say = (number) => (Math.abs(number) >= 1e12 ? short(number) : decimals(number, digits));
  if (high === low) return { text: Number.isInteger(value) ? say(value) : short(value), error: "exact" };
  const [below, above] = [value - low, high - value];
  const [near, from, to] = [rounding(value, digits), rounding(low, digits, -1), rounding(high, digits, 1)];
  const even = Math.min(below, above) >= 0.92 * Math.max(below, above);
  return { text: say(near), error: even ? `± ${say(Math.max(near - from, to - near))}` : `${say(from)} to ${say(to)}` };
}

function tile(column, level) {
  const { text, error } = parts(column.value[0], column.low[0], column.high[0]);
  return make(
    "div",
    { className: "tile" },
    make("dt", {}, column.name),
    make("dd", {}, make("span", { className: "figure" }, text), make("span", { className: "error" }, error)),
    make("dd", { className: "hint" }, error === "exact" ? "A public number." : `The true number lies there at ${level} %.`),
  );
}

const label = (keys, row) => keys.map(({ value }) => (value[row] === null ? "missing" : String(value[row]))).join(" · ");

// From zero to the greatest end, and below zero where an end is.
function span(column) {
  const ends = [0];
  for (const list of [column.value, column.low, column.high]) for (const end of list) if (end !== null) ends.push(end);
  let [from, to] = [0, 0];
  for (const end of ends) {
    if (end < from) from = end;
    if (end > to) to = end;
  }
  return { from, to: to === from ? from + 1 : to };
}

function figure(columns, numbers, rows, level) {
  const panels = panelsOf(columns.filter(({ isKey }) => isKey), rows);
  if (panels === null) return null;
  const canvas = make("div", { className: panels.length > 1 ? "chart panels" : "chart" });
  const options = numbers.map(({ name }, at) => make("option", { value: at }, name));
  const id = `chart-of-${count}`;
  const choose = make("select", { id, on: { input: () => paint() } }, ...options);
  const paint = () => {
    const column = numbers[choose.value || 0];
    fill(canvas, ...panels.map((panel) => painted(panel, column, level)));
  };
  paint();
  const words = `Bars: released numbers. Whiskers: where the true numbers lie, each at ${level} %.`;
  const caption = make("figcaption", { className: "hint" }, words);
  const chooser = make("div", { className: "chooser" }, make("label", { htmlFor: id }, "Draw"), choose);
  return make("figure", {}, numbers.length > 1 ? chooser : null, canvas, caption);
}

// What is drawn: one chart, or of two group columns one for each key of that with fewer, all with the same bars in one
// order. Nothing if there would be too many.
function panelsOf(keys, rows) {
  const all = Array.from({ length: rows }, (_, row) => row);
  if (keys.length === 2) {
    const different = keys.map((key) => [...new Set(all.map((row) => label([key], row)))]);
    const [facet, axis] = different[0].length <= different[1].length ? [0, 1] : [1, 0];
    if (different[facet].length <= MOST_PANELS && different[axis].length <= MOST_BARS) {
      return different[facet].map((name) => {
        const own = new Map(all.filter((row) => label([keys[facet]], row) === name).map((row) => [label([keys[axis]], row), row]));
        return { name: `${keys[facet].name}: ${name}`, bars: different[axis].map((words) => [words, own.get(words)]) };
      });
    }
  }
  return rows > MOST_BARS ? null : [{ name: null, bars: all.map((row) => [label(keys, row), row]) }];
}

function painted(panel, column, level) {
  if (panel.name === null) return bars(panel, column, level, 680);
  return make("div", {}, make("p", { className: "panel-name" }, panel.name), bars(panel, column, level, 350));
}

function bars(panel, column, level, most) {
  const wide = Math.min(most, Math.max(280, document.documentElement.clientWidth - 66));
  const [high, start, end] = [26, wide < 500 ? 96 : 150, 22];
  const { from, to } = span(column);
  const x = (value) => start + ((wide - start - end) * (value - from)) / (to - from);
  const rows = panel.bars.map(([words, row], at) => {
    const name = draw("text", { x: start - 10, y: at * high + 17, class: "bar-name", "text-anchor": "end" });
    const room = Math.floor(start / 8.5);
    name.textContent = words.length > room ? `${words.slice(0, room - 1)}…` : words;
    const value = row === undefined ? null : column.value[row];
    if (value === null) return draw("g", {}, name);
    const middle = at * high + 13;
    const bar = { x: Math.min(x(0), x(value)), width: Math.abs(x(value) - x(0)) };
    const drawn = [name, draw("rect", { ...bar, y: at * high + 4, height: high - 8, class: "bar-fill" })];
    if (column.low[row] !== null && column.high[row] !== null) {
      const [a, b] = [x(column.low[row]), x(column.high[row])];
      drawn.push(draw("path", { d: `M${a} ${middle}H${b}M${a} ${middle - 5}v10M${b} ${middle - 5}v10`, class: "whisker" }));
    }
    const tip = draw("title");
    const { text, error } = parts(value, column.low[row], column.high[row]);
    tip.textContent = `${words}: ${text} ${error}`;
    return draw("g", {}, tip, ...drawn);
  });
  const height = panel.bars.length * high;
  const axis = even(from, to, wide - start - end < 240 ? 3 : 5).map((value) => {
    const words = draw("text", { x: x(value), y: height + 18, class: "tick", "text-anchor": "middle" });
    words.textContent = short(value);
    return draw("g", {}, draw("path", { d: `M${x(value)} 0V${height}`, class: "grid" }), words);
  });
  const of = panel.name === null ? "" : `, ${panel.name},`;
  const title = `${column.name}${of} with ${level} % intervals; the table below has the numbers`;
  return draw("svg", { viewBox: `0 0 ${wide} ${height + 24}`, role: "img", "aria-label": title }, ...axis, ...rows);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), "en");
}

// Some numbers that can be said, between two ends, so many steps at most.
function even(from, to, most) {
  const power = 10 ** Math.floor(Math.log10((to - from) / most));
  const step = power * ([1, 2, 5].find((factor) => (to - from) / (factor * power) <= most) ?? 10);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(6)));
}

class Table {
  constructor(columns, rows, level, of) {
    Object.assign(this, { columns, count: rows, shown: PAGE, by: null, down: false, wanted: "" });
    this.keys = columns.filter(({ isKey }) => isKey);
    for (const column of columns) if (!column.isKey) column.span = span(column);
    this.heads = columns.map((column) => this.head(column));
    this.body = make("tbody");
    this.more = make("button", { type: "button", className: "quiet", on: { click: () => this.showMore() } });
    this.found = make("p", { className: "hint", role: "status" });
    const words = `${many(rows, "row")}. “±” and “to” say where the true number lies, each at ${level} %.`;
    const caption = make("caption", {}, words);
    const table = make("table", { className: "answer" }, caption, make("thead", {}, make("tr", {}, ...this.heads)), this.body);
    this.element = make(
      "div",
      {},
      rows > 12 && this.keys.length ? this.finder() : null,
      make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": `Released numbers${of}` }, table),
      this.more,
    );
    this.paint();
  }

  head(column) {
    const work = () => {
      this.down = this.by === column ? !this.down : !column.isKey;
      this.by = column;
      this.paint();
    };
    const button = make("button", { type: "button", className: "sort", on: { click: work } }, column.name);
    return make("th", { scope: "col", className: column.isKey ? "" : "number" }, button);
  }

  finder() {
    const work = { input: () => this.find(input.value) };
    const id = `find-row-${count}`;
    const input = make("input", { id, type: "search", autocomplete: "off", on: work });
    return make("div", { className: "finder" }, make("label", { htmlFor: id }, "Find a row"), input, this.found);
  }

  find(text) {
    this.wanted = text.trim().toLowerCase();
    this.shown = PAGE;
    this.paint();
  }

  showMore() {
    const first = this.shown;
    this.shown += 4 * PAGE;
    this.paint();
    const row = this.body.children[first];
    row.tabIndex = -1;
    row.focus();
  }

  order() {
    let rows = Array.from({ length: this.count }, (_, row) => row);
    if (this.wanted) rows = rows.filter((row) => label(this.keys, row).toLowerCase().includes(this.wanted));
    if (this.by !== null) {
      const { value } = this.by;
      const sign = this.down ? -1 : 1;
      rows.sort((a, b) => sign * compare(value[a], value[b]));
    }
    return rows;
  }

  paint() {
    const rows = this.order();
    fill(this.body, ...rows.slice(0, this.shown).map((row) => this.row(row)));
    this.heads.forEach((head, at) => {
      if (this.columns[at] === this.by) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.found.textContent = this.wanted ? `${many(rows.length, "row")} found.` : "";
    this.more.hidden = rows.length <= this.shown;
    this.more.textContent = `Show more of ${many(rows.length, "row")}`;
  }

  row(row) {
    const head = (column) => make("th", { scope: "row" }, label([column], row));
    return make("tr", {}, ...this.columns.map((column) => (column.isKey ? head(column) : this.cell(column, row))));
  }

  cell(column, row) {
    const { text, error } = parts(column.value[row], column.low[row], column.high[row]);
    const words = [make("span", { className: "value" }, text), make("span", { className: "error" }, error)];
    return make("td", { className: "number" }, behind(column, row), ...words);
  }
}

// The bar of a number and its interval, behind its text.
function behind({ value, low, high, span: { from, to } }, row) {
  const drawing = draw("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "behind", "aria-hidden": "true" });
  if (value[row] === null) return drawing;
  const x = (number) => (100 * (number - from)) / (to - from);
  const bar = { x: Math.min(x(0), x(value[row])), width: Math.abs(x(value[row]) - x(0)) };
  drawing.append(draw("rect", { ...bar, y: 0, height: 10, class: "bar-fill" }));
  if (low[row] !== null && high[row] !== null) {
    const d = `M${x(low[row])} 10H${Math.max(x(low[row]) + 0.4, x(high[row]))}`;
    drawing.append(draw("path", { d, class: "reach", "vector-effect": "non-scaling-stroke" }));
  }
  return drawing;
}

export const spent = (answer) => `ε ${epsilonText(exact(answer.epsilon))}`;
