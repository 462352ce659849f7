// The server: a token that stays in this tab, refusals as sentences, and ids that are kept until they are answered.

const TOKEN = "discreet.token";
const PENDING = "discreet.pending";

export class Refusal extends Error {
  constructor(status, error, advice) {
    super(error);
    Object.assign(this, { status, advice });
  }

  // The sentence, with the advice where it helps: the error of a wrong question is complete without it.
  get words() {
    const sentence = this.message.endsWith(".") ? this.message : `${this.message}.`;
    return this.status === 400 || this.status === 422 ? sentence : `${sentence} ${this.advice}`;
  }

  // Whether ε may have been spent: then the same id must be used again.
  get open() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

// The token is in memory, and in storage only between two loads of this tab: a tab opened from here would get a copy of
// the storage.
let token = null;

function takeToken() {
  token = sessionStorage.getItem(TOKEN) ?? token;
  sessionStorage.removeItem(TOKEN);
}
takeToken();
addEventListener("pageshow", takeToken);
addEventListener("pagehide", () => token !== null && sessionStorage.setItem(TOKEN, token));

export const hasToken = () => token !== null;
export const keepToken = (text) => (token = text);

export function forget() {
  token = null;
  sessionStorage.clear();
}

async function send(path, options = {}) {
  const headers = { authorization: `Bearer ${token ?? ""}` };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...headers, ...options.headers }, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server cannot be reached.", "Try again; nothing is charged twice.");
  }
  if (response.ok) return response;
  const refused = await response.json().catch(() => ({}));
  throw new Refusal(response.status, refused.error ?? "The server could not answer.", refused.advice ?? "Try again.");
}

const json = async (path, options) => (await send(path, options)).json();
const post = (path, body, signal) => json(path, { method: "POST", body: JSON.stringify(body), signal });

export const studies = () => json("studies");
export const ledger = async (study) => (await json(`ledger?study=${encodeURIComponent(study)}`)).entries;
export const released = (id) => json(address(id), { headers: { accept: "application/json" } });
export const file = async (id, table, format) => (await send(`${address(id, table)}?format=${format}`)).blob();

// The ids of reports have a prefix, and reports have tables.
function address(id, table = null) {
  const kind = id.startsWith("discreet.report.") ? "reports" : "releases";
  return [kind, id, ...(table === null ? [] : [table])].map(encodeURIComponent).join("/");
}

export async function plan(body, signal) {
  const path = body.columns ? "discover/plan" : body.tables ? "report/plan" : "plan";
  const plan = await post(path, body, signal);
  // defaults for a report and a discovery, which lack these fields
  return { cost: plan.epsilon, lines: [], warnings: [], notes: [], curve: { points: [] }, ...plan };
}

const pending = () => JSON.parse(sessionStorage.getItem(PENDING) ?? "{}");

function keepPending(all) {
  sessionStorage.setItem(PENDING, JSON.stringify(all));
}

// Questions of a study that were sent but not answered.
export function unanswered(study) {
  const bodies = Object.keys(pending()).map((mark) => JSON.parse(mark));
  return bodies.filter((body) => body.study === study);
}

// An answer. After a failure, the same question is asked under the same id, which is charged once.
export async function release(body) {
  if (body.columns) return post("discover", body); // a study has one discovery, which needs no id to be charged once
  const mark = JSON.stringify(body);
  const all = pending();
  all[mark] ??= identity();
  keepPending(all);
  try {
    const answer = await post(body.tables ? "report" : "release", { ...body, request_id: all[mark] });
    settle(mark);
    return answer;
  } catch (error) {
    if (error instanceof Refusal && !error.open) settle(mark);
    throw error;
  }
}

function settle(mark) {
  const all = pending();
  delete all[mark];
  keepPending(all);
}

// randomUUID exists only on secure origins; behind a plain-http proxy, the random bits are drawn directly.
function identity() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
