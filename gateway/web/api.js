/** The REST API: who is signed in, and calls that try again where that is safe. */

const KEY = "gloaming.session";
/** An access token is renewed so long before it runs out, in ms, or when a quarter of its time is left. */
const EARLY = 60_000;
const TRIES = 4;

/** A refusal of the server's (RFC 9457). */
export class Refused extends Error {
  /** @param {any} problem */
  constructor(problem) {
    super(problem.detail || problem.title || "The server refuses, and does not say why.");
    this.status = problem.status;
    this.reason = problem.reason;
    this.retryAfter = problem.retryAfter;
  }
}

/** The server cannot be reached. */
export class Away extends Error {
  constructor() {
    super("The server cannot be reached.");
  }
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** A name for a request, or anything else that is to be unique. `crypto.randomUUID` is there on https and localhost only. */
export function unique() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Whoever is signed in: {player, accessToken, expireTime, refreshToken}, or null. It is in localStorage, so that all tabs are the same player
 * and a player comes back as the same; no script but this page's own may run here (Content-Security-Policy), and signing out revokes it.
 */
export const session = {
  get now() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) ?? "null");
      return kept?.player?.id && kept.accessToken && kept.refreshToken ? kept : null;
    } catch {
      return null;
    }
  },
  /** @param {any} pair */
  keep(pair) {
    localStorage.setItem(KEY, JSON.stringify({ ...pair, renewTime: renewTime(pair.accessToken) }));
    this.onchange?.();
  },
  drop() {
    localStorage.removeItem(KEY);
    this.onchange?.();
  },
  /** @type {((elsewhere?: boolean) => void) | null} called when somebody signed in or out, here or in another tab */
  onchange: null,
};
addEventListener("storage", (event) => event.key === KEY && session.onchange?.(true));

/** Signs in as a guest. @param {string} name */
export async function signIn(name) {
  const pair = await call("POST", "/players", { name }, { open: true });
  session.keep(pair);
  return pair;
}

/** Signs out, everywhere. */
export async function signOut() {
  await call("POST", "/players/me:signOut", {}).catch(() => {});
  session.drop();
}

/** @param {string} name */
export async function rename(name) {
  const player = await call("PATCH", "/players/me", { name });
  localStorage.setItem(KEY, JSON.stringify({ ...session.now, player }));
  session.onchange?.(true);
}

/** When to renew a token that has just come, by the clock of this machine, which may be wrong: only what it measures is relied upon. */
function renewTime(accessToken) {
  const { iat, exp } = JSON.parse(atob(accessToken.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
  const life = (exp - iat - 1) * 1000; // both are whole seconds
  return Date.now() + life - Math.min(EARLY, life / 4);
}

/**
 * An access token that is good for a while yet. Two tabs renew one after the other, so that the second finds the first one's.
 * @param {string} [bad] one that was refused
 * @returns {Promise<string>}
 */
export async function token(bad) {
  const good = (pair) => pair && pair.accessToken !== bad && pair.renewTime > Date.now();
  if (good(session.now)) return session.now.accessToken;
  const renew = async () => {
    const pair = session.now;
    if (!pair) throw new Refused({ status: 401, reason: "SIGNED_OUT", detail: "You are signed out." });
    if (good(pair)) return pair.accessToken;
    try {
      const fresh = await call("POST", "/players:refresh", { refreshToken: pair.refreshToken }, { open: true });
      session.keep(fresh);
      return fresh.accessToken;
    } catch (error) {
      if (error.status === 401 && session.now?.refreshToken === pair.refreshToken) session.drop();
      throw error;
    }
  };
  return navigator.locks ? navigator.locks.request(KEY, renew) : renew();
}

/** In how many ms the access token is to be renewed. */
export const renewIn = () => (session.now ? Math.max(0, session.now.renewTime - Date.now()) : Infinity);

/**
 * Calls the API. What is posted carries a key, so that it is done once however often it has to be sent.
 * @param {string} method
 * @param {string} path below /v1
 * @param {any} [body]
 * @param {{open?: boolean, signal?: AbortSignal}} [more] open: without a token
 * @returns {Promise<any>}
 */
export async function call(method, path, body, { open = false, signal } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method === "POST") headers["Idempotency-Key"] = unique();
  let bad;
  for (let tried = 1; ; tried++) {
    if (!open) headers.Authorization = `Bearer ${await token(bad)}`;
    const response = await fetch(`/v1${path}`, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    }).catch((error) => {
      if (error.name === "AbortError") throw error;
    });
    if (response?.ok) return response.json().catch(() => ({}));
    const problem = response && { ...(await response.json().catch(() => ({}))), status: response.status };
    if (problem?.status === 401 && !open && bad === undefined) {
      bad = headers.Authorization.slice(7);
      continue;
    }
    const passes = !problem || problem.status === 503;
    if (!passes || tried === TRIES) {
      if (!problem) throw new Away();
      throw new Refused({ ...problem, retryAfter: Number(response.headers.get("Retry-After")) || undefined });
    }
    await sleep(2 ** tried * 150 * (0.5 + Math.random()));
  }
}
