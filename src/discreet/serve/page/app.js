// The page: log in with a token, choose a study, plan a question, release its answer, open answers from the history.

import * as answers from "./answer.js";
import * as discoveries from "./discovery.js";
import { fill, find, icon, make, say } from "./dom.js";
import { epsilonText, exact, isLess, isZero, minus } from "./exact.js";
import { Plan, REPEATED } from "./plan.js";
import { named, Question } from "./question.js";
import { Report } from "./report.js";
import * as server from "./server.js";
import * as studies from "./study.js";

const UNKNOWN = "This token does not work: it is mistyped, unknown, expired or revoked.";
const SAID = "discreet.said"; // a message for the next load of the page
const REFUSED = "The release will be refused, unless the same question was answered before: then it is free.";
const state = { studies: [], study: null, entries: [], all: false };
const changed = () => state.study && plan.soon();
const question = new Question(changed);
const report = new Report(changed);
const discovery = new discoveries.Discovery(changed);
const forms = { question, report, discovery };
const mode = () => find("modes").querySelector("input:checked").value;
const plan = new Plan(() => forms[mode()], () => showBudget(), () => leave(UNKNOWN));

const alertIn = (place, error) => {
  if (!(error instanceof server.Refusal)) throw error;
  if (error.status === 401) leave(UNKNOWN);
  else say(place, error.words);
};
const failed = (error) => alertIn(find("alert"), error);

find("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  say(find("login-alert"), "");
  const token = find("token").value.trim();
  if (!/^[!-~]+$/.test(token)) {
    leave(UNKNOWN); // it cannot be sent in a header
    return;
  }
  server.keepToken(token);
  await enter();
});
find("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash of the address is the name of a study
  find("main").focus();
});
find("leave").addEventListener("click", () => leave(""));
find("release").addEventListener("click", () => confirmed());
find("modes").addEventListener("input", () => {
  if (mode() === "report") report.begin(question.fields().sql);
  showForm();
  plan.soon();
});
find("more-history").addEventListener("click", () => {
  state.all = true;
  showHistory();
  find("releases").querySelector("button")?.focus();
});
addEventListener("hashchange", () => server.hasToken() && choose());

async function enter() {
  try {
    const { name, role, studies: opened } = await server.studies();
    state.studies = opened;
    find("who").textContent = role === "custodian" ? `${name}, custodian` : name;
  } catch (error) {
    find("login").hidden = false;
    alertIn(find("login-alert"), error);
    return;
  }
  find("token").value = "";
  find("login").hidden = true;
  find("leave").hidden = find("who").hidden = false;
  if (!state.studies.length) {
    say(find("alert"), "This token has no access to the studies on this server. Ask the custodian.");
    return;
  }
  choose();
}

// The page is loaded again, so that nothing of the study stays in it.
function leave(words) {
  server.forget();
  if (words) sessionStorage.setItem(SAID, words);
  location.replace(location.pathname);
}

// Open the study that the address names, or the first one.
function choose() {
  const hash = location.hash.slice(1);
  const study = state.studies.find(({ name }) => encodeURIComponent(name) === hash) ?? state.studies[0];
  const links = state.studies.map(({ name }) =>
    make("a", { href: `#${encodeURIComponent(name)}`, ...(name === study.name ? { "aria-current": "page" } : {}) }, name),
  );
  fill(find("studies"), ...links);
  find("studies").hidden = state.studies.length < 2;
  open(study);
}

async function open(study) {
  Object.assign(state, { study, entries: [], all: false });
  document.title = `${study.name} · discreet`;
  find("study-name").textContent = study.name;
  find("study-promise").textContent = studies.promise(study);
  find("desk").hidden = false;
  find("result").hidden = true;
  for (const id of ["alert", "release-alert", "plan-error"]) say(find(id), "");
  fill(find("plan-lines"));
  studies.columns(find("column-list"), study);
  find("modes").querySelector("input").checked = true;
  showForm();
  report.open(study, named);
  discovery.open(study);
  plan.open(study);
  question.open(study);
  showBudget();
  question.focus();
  await refreshHistory();
  offerUnanswered();
}

function showForm() {
  for (const name of Object.keys(forms)) find(name).hidden = name !== mode();
}

function showBudget() {
  if (state.study) studies.budget(find("gauges"), state.study, plan.plan);
}

function showHistory() {
  studies.history(state.entries, { all: state.all, names: state.study.allotment === null, open: openAgain });
}

async function refreshHistory() {
  const { name } = state.study;
  try {
    const entries = await server.ledger(name);
    if (state.study?.name === name) state.entries = entries;
  } catch (error) {
    failed(error);
    return;
  }
  showHistory();
}

async function refresh() {
  const { studies: opened } = await server.studies();
  const study = opened.find(({ name }) => name === state.study?.name);
  if (study === undefined) return;
  const hasNewKeys = state.study.discovers && !study.discovers;
  Object.assign(state, { studies: opened, study });
  plan.study = study;
  if (hasNewKeys) renew(study);
  plan.soon();
  showBudget();
  await refreshHistory();
}

// Fill the forms again, with the discovered keys.
function renew(study) {
  find("modes").querySelector("input").checked = true;
  showForm();
  studies.columns(find("column-list"), study);
  discovery.open(study);
  question.open(study);
}

// Release after a dialog that shows what will be spent and what will be left.
async function confirmed() {
  const body = plan.asked;
  const cost = exact(plan.plan.cost);
  if (isZero(cost)) {
    await release(body);
    return;
  }
  const left = exact(plan.plan.remaining);
  const after = minus(left, cost);
  const price = epsilonText(cost);
  const whose = state.study.allotment === null ? "in the study" : "of your share";
  const [again, short] = [plan.plan.asked_before, isLess(left, cost)];
  find("confirm-title").textContent = again ? "Ask again?" : short ? "Not enough ε is left" : `Spend ε ${price}?`;
  find("confirm-yes").textContent = again ? "Ask again" : short ? "Ask anyway" : `Spend ε ${price}`;
  const strong = (value) => make("strong", {}, epsilonText(value));
  const words = again
    ? [`This question was ${REPEATED}. If the data has changed, it costs ε ${price}.`]
    : short
      ? [`This costs ε ${price}, but only ε `, strong(left), ` is left ${whose}. ${REFUSED}`]
      : ["You have ε ", strong(left), ` left ${whose}. After this release, ε `, strong(after), " will be left."];
  fill(
    find("confirm-words"),
    make("p", {}, ...words),
    ...(body.columns ? [make("p", {}, plan.plan.meaning)] : []),
    make("pre", {}, make("code", {}, body.sql ?? (body.columns ? `Keys of ${body.columns.join(", ")}` : written(body.tables)))),
    make("p", { className: "hint" }, "What is spent cannot be refunded. The same question again gives the same answer, free."),
  );
  const dialog = find("confirm");
  dialog.returnValue = "no";
  dialog.showModal(); // the focus is on "Not now", so that a key held down spends nothing
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  if (dialog.returnValue === "yes") await release(body);
}

const written = (tables) => Object.entries(tables).map(([name, sql]) => `-- ${name}\n${sql}`).join("\n\n");

async function release(body) {
  const button = find("release");
  say(find("release-alert"), "");
  button.disabled = true;
  button.textContent = "Releasing…";
  find("plan").setAttribute("aria-busy", "true");
  try {
    const answer = await server.release(body);
    await refresh().catch(failed);
    if (state.study?.name !== body.study) return; // the answer is in the history of its study
    if (answer.keys) {
      const isOwn = state.entries.some(({ id, kind }) => id === discoveries.REQUEST && kind === "spend");
      presentKeys(answer, `${isOwn ? `${answers.spent(answer)} spent` : "Free"}; ${epsilonText(exact(answer.remaining))} left.`);
      return;
    }
    const free = state.entries.some(({ id, kind }) => id === answer.id && kind === "repeat");
    const cost = state.entries.some(({ id, kind }) => id === answer.id && kind === "spend");
    const first = free ? "Asked before: same answer, free" : cost ? `${answers.spent(answer)} spent` : "Free";
    present(answer, `${first}; ${epsilonText(exact(answer.remaining))} left.`);
  } catch (error) {
    alertIn(find("release-alert"), error);
    if (state.study) {
      plan.soon();
      offerUnanswered();
    }
  }
}

function present(answer, said) {
  find("result").hidden = false;
  const show = answer.tables ? answers.showReport : answers.show;
  show(find("answer"), answer, { said, edit, failed: (error) => alertIn(find("alert"), error) });
  head(answer.tables ? answer.title : "Answer");
}

function edit(sql) {
  find("modes").querySelector("input").checked = true;
  showForm();
  question.edit(sql);
}

function presentKeys(answer, said) {
  find("result").hidden = false;
  discoveries.showKeys(find("answer"), answer, { said });
  head("Discovered keys");
}

function head(words) {
  const title = find("result-title");
  title.textContent = words;
  title.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  title.focus({ preventScroll: true });
}

async function openAgain(entry) {
  try {
    if (entry.id === discoveries.REQUEST) {
      presentKeys(await server.release(discoveries.made(state.study, entry.epsilon)), "Opened again, free.");
      return;
    }
    const answer = await server.released(entry.id);
    present(answer, `Opened again, free: ${studies.brief(entry.question ?? "")}`);
  } catch (error) {
    failed(error);
  }
}

// Offer to repeat an unanswered question under its id, at no further cost.
function offerUnanswered() {
  const [body] = state.study ? server.unanswered(state.study.name) : [];
  if (body === undefined) return;
  const attributes = { type: "button", className: "quiet", on: { click: () => release(body) } };
  const again = make("button", attributes, icon("again"), "Ask again");
  find("release-alert").append(" The last question was not answered. If you ask it again, it is charged only once. ", again);
}

function greet() {
  find("login").hidden = false;
  say(find("login-alert"), sessionStorage.getItem(SAID) ?? "");
  sessionStorage.removeItem(SAID);
  find("token").focus();
}

if (server.hasToken()) enter();
else greet();
