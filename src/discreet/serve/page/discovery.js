// The form of a discovery: columns without a public list of keys.

import { fill, find, make } from "./dom.js";
import { epsilonText, exact, many, short, toNumber } from "./exact.js";

export const REQUEST = "discreet.discover"; // the id of the one discovery of a study, in the ledger

export class Discovery {
  constructor(changed) {
    find("discovery").addEventListener("submit", (event) => event.preventDefault());
    find("discovery").addEventListener("input", changed);
  }

  open(study) {
    const open = study.columns.filter(({ discover, keys }) => discover && keys === null);
    const chips = open.map(({ name }) =>
      make("label", { className: "chip" }, make("input", { type: "checkbox", value: name, checked: true }), name),
    );
    fill(find("discovery-columns"), ...chips);
    find("discovery-mode").hidden = !study.discovers;
  }

  get problem() {
    return this.fields().columns.length ? null : "Choose at least one column.";
  }

  fields() {
    return { columns: [...find("discovery-columns").querySelectorAll("input:checked")].map(({ value }) => value) };
  }
}

// The body of the discovery that was made, to ask for its keys again.
export const made = (study, epsilon) => ({
  study: study.name,
  columns: study.columns.filter(({ discover, keys }) => discover && keys !== null).map(({ name }) => name),
  epsilon,
});

// The plan of a discovery in sentences.
export function notes({ columns, meaning, always_from: always, half_from: half }, unit) {
  const who = (count) => many(count, unit === "row" ? "row" : "unit");
  const once = `The keys of ${columns.join(" and ")} also cost all of the study’s δ: a study can make only one discovery.`;
  return [once, meaning, `A key that ${who(always)} have is always shown; a key that ${who(half)} have, with probability 1/2 or more.`];
}

export function showKeys(place, discovered, { said }) {
  const price = `(ε, δ) = (${epsilonText(exact(discovered.epsilon))}, ${short(toNumber(exact(discovered.delta)))})`;
  const parts = Object.entries(discovered.keys).map(([column, keys]) =>
    make(
      "section",
      { className: "table-answer", "aria-label": column },
      make("h3", {}, column),
      make("p", { className: "hint" }, `${many(keys.length, "key")}, discovered at ${price}. Group by ${column} to use them.`),
      make("ul", { className: "keys" }, ...keys.map((key) => make("li", {}, String(key)))),
    ),
  );
  fill(place, make("p", { className: "summary" }, said), ...parts);
}
