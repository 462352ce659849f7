// A study: its privacy promise, columns, budget and history.

import { REQUEST } from "./discovery.js";
import { draw, fill, find, make } from "./dom.js";
import { epsilonText, exact, isLess, isZero, many, minus, share, short, times } from "./exact.js";

const FIRST = 8; // entries of the history that are shown at first

export function promise(study) {
  const whom = study.unit === "row" ? "Each row is protected" : `All rows of one ${study.unit} are protected together`;
  const rows = study.max_rows === null ? "" : `, of which at most ${study.max_rows.toLocaleString("en")} are used`;
  const who = study.unit === "row" ? "rows" : "units";
  const known = study.neighbors === "change-one" ? `the number of ${who} is public` : `the number of ${who} is private`;
  return `${whom}${rows}; ${known} (${study.neighbors}).`;
}

function factsOf(column) {
  const facts = [];
  if (column.bounds) facts.push(`${edge(column.bounds[0])} to ${edge(column.bounds[1])}`);
  if (column.bins) facts.push(`bins at ${column.bins.map(edge).join(", ")}`);
  if (column.discover) facts.push(column.keys === null ? "keys not discovered yet" : "discovered keys");
  if (column.missing !== null) facts.push(`missing values count as ${edge(column.missing)}`);
  if (column.other !== null) facts.push(`other values count as “${column.other}”`);
  if (!facts.length && !column.keys && column.kind !== "truth") facts.push("only in conditions");
  return facts.join("; ");
}

const edge = (value) => (typeof value === "number" ? short(value) : String(value).replace(/T00:00:00$/, ""));

export function columns(place, study) {
  const items = study.columns.map((column) => {
    const facts = factsOf(column);
    const words = make("dd", {}, make("span", { className: "kind" }, column.kind), facts ? ` ${facts}` : "");
    if (column.keys) {
      const { count, first } = column.keys;
      const rest = count > first.length ? `, and ${(count - first.length).toLocaleString("en")} more` : "";
      const list = make("p", {}, first.map(edge).join(", ") + rest);
      words.append(facts ? "; " : " ", make("details", {}, make("summary", {}, many(count, "key")), list));
    }
    return make("div", {}, make("dt", {}, column.name), words);
  });
  fill(place, make("dl", { className: "columns" }, ...items));
}

// Bars that show what was spent and what the plan would spend.
export function budget(place, study, plan) {
  const [total, remaining, left] = [exact(study.total), exact(study.remaining), exact(study.left)];
  const cost = plan === null || plan.asked_before ? exact("0") : exact(plan.cost);
  const used = minus(total, remaining);
  const parts = [];
  if (study.allotment !== null) {
    const own = exact(study.allotment);
    const capped = isLess(left, own) ? left : own;
    parts.push(gauge("Your share", own, minus(own, capped), cost, `ε ${epsilonText(left)} left of ${epsilonText(own)}`));
  }
  const words = `ε ${epsilonText(used)} of ${epsilonText(total)} spent by everybody`;
  parts.push(gauge("The study", total, used, cost, words));
  const key = [make("span", { className: "used" }, "spent"), make("span", { className: "next" }, "this question")];
  parts.push(make("p", { className: "key hint", "aria-hidden": "true" }, ...key));
  parts.push(make("p", { className: "summary", id: "like-this" }, like(left, cost, plan)));
  fill(place, ...parts);
}

function like(left, cost, plan) {
  if (isZero(left)) return "Nothing is left. You can still open earlier answers, free.";
  if (plan === null) return "";
  if (plan.asked_before) return "This question was asked before: free while the data is the same.";
  const count = times(left, cost);
  if (count === null) return "This question is free.";
  if (count === 0n) return "Not enough ε is left for this question at this price.";
  if (plan.meaning) return "Enough for this discovery.";
  const word = plan.measured ? "report" : "question";
  return `Enough for ${count > 9999n ? `thousands of ${word}s` : many(count, word)} like this one.`;
}

function gauge(name, total, used, cost, words) {
  const from = share(used, total);
  const next = Math.min(share(cost, total), 1 - from);
  const bar = draw(
    "svg",
    { viewBox: "0 0 100 6", preserveAspectRatio: "none", class: "gauge", "aria-hidden": "true" },
    draw("rect", { x: 0, y: 0, width: 100, height: 6, class: "gauge-left" }),
    draw("rect", { x: 0, y: 0, width: 100 * from, height: 6, class: "gauge-used" }),
    draw("rect", { x: 100 * from, y: 0, width: 100 * next, height: 6, class: "gauge-next" }),
  );
  return make("div", { className: "gauge-part" }, make("p", {}, make("strong", {}, name), make("span", {}, words)), bar);
}

// A canonical question without its lists of keys, which are shown with the columns.
export function brief(question) {
  let [text, rest] = ["", question];
  for (let start = rest.indexOf(" KEYS ["); start >= 0; start = rest.indexOf(" KEYS [")) {
    text += rest.slice(0, start);
    rest = rest.slice(listEnd(rest, start + 6));
  }
  return (text + rest).replaceAll(/ KEYS \d+ sha256 [0-9a-f]+/g, "");
}

function listEnd(text, start) {
  let isText = false;
  for (let index = start; index < text.length; index += 1) {
    if (isText && text[index] === "\\") index += 1;
    else if (text[index] === '"') isText = !isText;
    else if (!isText && text[index] === "]") return index + 1;
  }
  return text.length;
}

const WHEN = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });

export function history(entries, { all, names, open }) {
  const answered = new Set(entries.filter(({ kind }) => kind === "answer" || kind === "repeat").map(({ id }) => id));
  const asked = entries.filter(({ id, kind }) => id !== null && (kind === "spend" || kind === "repeat")).reverse();
  const shown = all ? asked : asked.slice(0, FIRST);
  const items = shown.map((entry) => {
    const price = entry.kind === "repeat" ? "free, asked before" : `ε ${epsilonText(exact(entry.epsilon))}`;
    const state = answered.has(entry.id) ? "" : " · no answer stored";
    const words = `${price} · ${WHEN.format(new Date(entry.time))}${names ? ` · ${entry.analyst ?? "custodian"}` : ""}${state}`;
    const asked = entry.id === REQUEST ? "Discovered keys" : brief(entry.question ?? "the same question as before");
    const question = make("code", {}, asked);
    const attributes = { type: "button", className: "entry", on: { click: () => open(entry) } };
    return make("li", {}, make("button", attributes, question, make("span", { className: "hint" }, words)));
  });
  fill(find("releases"), ...items);
  find("more-history").hidden = shown.length === asked.length;
  find("history-hint").textContent = asked.length ? "You can open each answer again, free." : "No questions yet.";
}
