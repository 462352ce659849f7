// The form of a report: named tables, each a SELECT, that are measured together.

import { fill, find, icon, make } from "./dom.js";

const isGroup = (column) => column.keys || column.bins || column.kind === "truth";

export class Report {
  constructor(changed) {
    this.changed = changed;
    find("report").addEventListener("submit", (event) => event.preventDefault());
    find("report").addEventListener("input", () => this.changed());
    find("add-table").addEventListener("click", () => {
      this.add(...this.next()).focus();
      this.changed();
    });
  }

  open(study, named) {
    Object.assign(this, { study, named });
    find("report-title").value = "";
    fill(find("tables"));
  }

  // The first table is the question in the form of one question.
  begin(sql) {
    const group = /GROUP BY (\w+)$/.exec(sql)?.[1];
    if (!find("tables").children.length) this.add(this.free(group ? `by_${group}` : "table_1"), sql);
  }

  // A table by the next group column, as a start to edit.
  next() {
    const groups = this.study.columns.filter(isGroup).map(({ name }) => name);
    const taken = Object.values(this.fields().tables).join(" ");
    const group = groups.find((name) => !taken.includes(this.named(name)));
    const table = this.named(this.study.table);
    if (group === undefined) return [this.free(`table_${find("tables").children.length + 1}`), `SELECT count(*)\nFROM ${table}`];
    const column = this.named(group);
    return [this.free(`by_${group}`), `SELECT ${column}, count(*)\nFROM ${table}\nGROUP BY ${column}`];
  }

  free(name) {
    const names = new Set(this.rows().map(([taken]) => taken));
    const plain = name.replaceAll(/[^\p{L}\p{N}_-]+/gu, "_").slice(0, 50); // files are named after it
    let [unique, number] = [plain, 2];
    for (; names.has(unique); number += 1) unique = `${plain}_${number}`;
    return unique;
  }

  add(name, sql) {
    const called = make("input", { "aria-label": "Name of the table", value: name, spellcheck: false, autocomplete: "off" });
    const text = make("textarea", { "aria-label": "SELECT of the table", rows: 3, spellcheck: false, value: sql });
    text.setAttribute("autocapitalize", "none");
    const part = make("div", { className: "table-part" }, make("div", { className: "row" }, called, this.remover()), text);
    part.read = () => [called.value.trim(), text.value.trim()];
    find("tables").append(part);
    this.tidy();
    return called;
  }

  remover() {
    const words = "Remove this table";
    const work = (event) => {
      event.currentTarget.closest(".table-part").remove();
      this.tidy();
      find("add-table").focus();
      this.changed();
    };
    const attributes = { type: "button", className: "quiet square", "aria-label": words, title: words, on: { click: work } };
    return make("button", attributes, icon("remove"));
  }

  // A report has at least one table.
  tidy() {
    const parts = [...find("tables").children];
    for (const part of parts) part.querySelector("button").hidden = parts.length === 1;
  }

  rows() {
    return [...find("tables").children].map((part) => part.read());
  }

  // Problems that are lost when tables become an object.
  get problem() {
    const names = this.rows().map(([name]) => name);
    if (names.includes("")) return "Each table needs a name.";
    return new Set(names).size < names.length ? "Two tables have the same name." : null;
  }

  fields() {
    const title = find("report-title").value.trim();
    return { tables: Object.fromEntries(this.rows()), ...(title ? { title } : {}) };
  }
}
