// The form of a question, which writes SQL. The SQL is what is asked.

import { fill, find, icon, make } from "./dom.js";
import { STATISTICS } from "./statistics.js"; // made by the server

const ORDER = ["=", "<>", "<", "<=", ">", ">="];
const SIGNS = { number: ORDER, date: ["<", "<=", ">", ">="], text: ["=", "<>", "LIKE"], truth: ["is true", "is false"] };
const MISSING = ["is missing", "is not missing"];
const SHOWN = { "<>": "≠", "<=": "≤", ">=": "≥", LIKE: "like" };
const TAKEN = new Set(
  ("all and as asc between bin by case cast coalesce count date desc distinct else end exists extract false from " +
    "group having in interval is join key like limit max min month not null on or order select sum table then time " +
    "true union unit user using values when where with year").split(" "),
);

export const named = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) && !TAKEN.has(name) ? name : `"${name.replaceAll('"', '""')}"`);
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

export class Question {
  constructor(changed) {
    this.changed = changed;
    this.sql = find("sql");
    find("question").addEventListener("submit", (event) => event.preventDefault());
    find("builder").addEventListener("input", () => this.write());
    find("add-statistic").addEventListener("click", () => this.addStatistic(true));
    find("add-condition").addEventListener("click", () => this.addCondition(true));
    find("use-form").addEventListener("click", () => {
      this.write();
      find("statistics").querySelector("select").focus();
    });
    this.sql.addEventListener("input", () => this.byHand());
  }

  open(study) {
    this.study = study;
    const measured = study.columns.filter((column) => column.kind === "number" && column.bounds);
    this.offers = {
      number: measured.map((column) => column.name),
      truth: study.columns.filter((column) => column.kind === "truth").map((column) => column.name),
      unit: study.unit === "row" ? [] : [study.unit],
    };
    this.statistics = STATISTICS.filter(({ of }) => of === null || this.offers[of].length);
    fill(find("statistics"));
    fill(find("conditions"));
    this.showGroups();
    this.addStatistic(false);
    this.write();
  }

  focus() {
    find("statistics").querySelector("select").focus({ preventScroll: true });
  }

  showGroups() {
    const offered = this.study.columns.flatMap((column) => {
      if (column.keys || column.bins || column.kind === "truth") return [[column.name, named(column.name)]];
      return column.kind === "date" ? [[`month of ${column.name}`, `month(${named(column.name)})`]] : [];
    });
    const chips = offered.map(([words, sql]) =>
      make("label", { className: "chip" }, make("input", { type: "checkbox", value: sql }), words),
    );
    fill(find("groups"), ...(chips.length ? chips : [make("p", { className: "hint" }, "No column of this study has keys.")]));
  }

  addStatistic(focus) {
    const kind = make("select", { "aria-label": "Statistic" }, ...this.statistics.map(({ name }) => make("option", {}, name)));
    const of = make("select", { "aria-label": "Column" });
    const words = "Share below it, between 0 and 1";
    const share = make("input", { "aria-label": words, value: "0.9", inputMode: "decimal", className: "small" });
    const row = make("div", { className: "row" }, kind, of, share, this.remove("Remove this statistic", "add-statistic"));
    const choose = () => {
      const chosen = this.statistics[kind.selectedIndex];
      const before = of.value;
      fill(of, ...(this.offers[chosen.of] ?? []).map((name) => make("option", {}, name)));
      if (this.offers[chosen.of]?.includes(before)) of.value = before;
      of.hidden = chosen.of === null;
      share.hidden = !chosen.sql.includes("{share}");
    };
    row.read = () => {
      const chosen = this.statistics[kind.selectedIndex];
      const written = { column: named(of.value), share: share.value.trim() || "0.5" };
      return chosen.sql.replace(/\{(column|share)\}/g, (_, part) => written[part]);
    };
    kind.addEventListener("input", choose);
    this.add("statistics", row, focus && kind, choose);
  }

  addCondition(focus) {
    const columns = this.study.columns;
    const of = make("select", { "aria-label": "Column" }, ...columns.map(({ name }) => make("option", {}, name)));
    const sign = make("select", { "aria-label": "Comparison" });
    const id = `keys-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
    const keys = make("datalist", { id });
    const value = make("input", { "aria-label": "Value", list: id, spellcheck: false });
    const row = make("div", { className: "row" }, of, sign, value, keys, this.remove("Remove this condition", "add-condition"));
    const choose = () => {
      const column = columns[of.selectedIndex];
      const signs = [...SIGNS[column.kind], ...MISSING];
      fill(sign, ...signs.map((one) => make("option", { value: one }, SHOWN[one] ?? one)));
      fill(keys, ...(column.keys?.first ?? []).map((key) => make("option", { value: String(key) })));
      value.type = column.kind === "date" ? "date" : "text";
      value.inputMode = column.kind === "number" ? "decimal" : "text";
      value.value = "";
      choose.sign();
    };
    choose.sign = () => (value.hidden = sign.value.startsWith("is "));
    row.read = () => condition(columns[of.selectedIndex], sign.value, value.value);
    of.addEventListener("input", choose);
    sign.addEventListener("input", choose.sign);
    this.add("conditions", row, focus && of, choose);
  }

  add(place, row, focus, choose) {
    choose();
    find(place).append(row);
    this.tidy();
    if (focus) {
      focus.focus();
      this.write();
    }
  }

  remove(words, next) {
    const work = (event) => {
      event.currentTarget.parentElement.remove();
      this.tidy();
      find(next).focus();
      this.write();
    };
    const told = { type: "button", className: "quiet square", "aria-label": words, title: words };
    return make("button", { ...told, on: { click: work } }, icon("remove"));
  }

  // A question has at least one statistic.
  tidy() {
    const rows = [...find("statistics").children];
    for (const row of rows) row.querySelector("button").hidden = rows.length === 1;
  }

  write() {
    const read = (id) => [...find(id).children].map((row) => row.read()).filter((text) => text !== null);
    const groups = [...find("groups").querySelectorAll("input:checked")].map((box) => box.value);
    const where = read("conditions");
    const lines = [`SELECT ${[...groups, ...new Set(read("statistics"))].join(", ")}`, `FROM ${named(this.study.table)}`];
    if (where.length) lines.push(`WHERE ${where.join(" AND ")}`);
    if (groups.length) lines.push(`GROUP BY ${groups.join(", ")}`);
    this.set(lines.join("\n"));
    this.hold(false);
  }

  fields() {
    return { sql: this.sql.value.trim() };
  }

  set(text) {
    this.sql.value = text;
    this.grow();
    this.changed();
  }

  byHand() {
    this.hold(true);
    this.grow();
    this.changed();
  }

  edit(text) {
    this.hold(true);
    this.set(text);
    this.sql.focus();
  }

  // What was written by hand is not overwritten by a touch of the form.
  hold(held) {
    find("builder").disabled = held;
    find("use-form").hidden = !held;
    const byHand = "Written by hand. The form rests until you use it again.";
    find("sql-hint").textContent = held ? byHand : "Written by the form. You can edit it.";
  }

  grow() {
    this.sql.rows = Math.min(14, Math.max(3, this.sql.value.split("\n").length));
  }
}

function condition(column, sign, value) {
  const name = named(column.name);
  if (sign === "is true") return name;
  if (sign === "is false") return `NOT ${name}`;
  if (MISSING.includes(sign)) return `${name} IS ${sign === "is missing" ? "" : "NOT "}NULL`;
  if (value.trim() === "") return null;
  const isNumber = column.kind === "number" && /^\s*-?\d+(\.\d+)?\s*$/.test(value);
  return `${name} ${sign} ${isNumber ? value.trim() : quoted(value)}`;
}
