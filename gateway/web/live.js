/** The live socket: one for the page. It comes back by itself, and goes on at the cursors. */

import { Refused, renewIn, session, token, unique } from "./api.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const OPENS_WITHIN = 10_000;
const PING_EVERY = 5_000;
/** After so long without a word the line is taken for dead, in ms; the server pings every 5 s. */
const SILENT = 14_000;
const ROUND_TRIPS = 9;

/**
 * @typedef {Object} Watch
 * @property {string} matchId
 * @property {string} after the cursor to go on from
 * @property {(match: any) => void} onsnapshot
 * @property {(event: any) => void} onevent
 * @property {(problem: Refused) => void} onproblem
 */

class Live {
  /** @type {"off" | "opening" | "open" | "away"} */
  state = "off";
  /** @type {(state: string, wait: number) => void} told of every change, and in how many ms the next try is */
  onstate = () => {};
  /** @type {Set<(room: any) => void>} */
  rooms = new Set();
  /** @type {Set<(ticket: any) => void>} */
  tickets = new Set();

  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {Map<string, Watch>} */
  #watches = new Map();
  /** @type {Map<string, {frame: any, done: (answer: any) => void, failed: (error: Error) => void}>} */
  #asked = new Map();
  #failures = 0;
  #opens = 0;
  #timers = { retry: 0, renew: 0, ping: 0 };
  #heard = 0;
  /** @type {Map<string, number>} */
  #pings = new Map();
  /** @type {number[]} */
  #roundTrips = [];

  constructor() {
    addEventListener("online", () => this.#hurry());
    addEventListener("offline", () => this.#lost());
    document.addEventListener("visibilitychange", () => document.hidden || this.#hurry());
  }

  /** Opens it, unless it is. */
  open() {
    if (this.state === "off") this.#open();
  }

  /** Closes it for good, as when one signs out. */
  close() {
    this.#drop();
    this.#watches.clear();
    for (const { failed } of this.#asked.values()) failed(new Error("The connection was closed."));
    this.#asked.clear();
    this.#become("off");
  }

  /** The round trip of this page's line, in ms: the median of the last few; null while none is known. */
  get roundTrip() {
    const sorted = [...this.#roundTrips].sort((a, b) => a - b);
    return sorted.length ? sorted[sorted.length >> 1] : null;
  }

  /**
   * Watches a match until the function returned is called.
   * @param {Watch} watch
   */
  watch(watch) {
    this.#watches.set(watch.matchId, watch);
    this.open();
    if (this.state === "open") this.#watch(watch);
    return () => {
      if (this.#watches.get(watch.matchId) !== watch) return;
      this.#watches.delete(watch.matchId);
      this.ask({ unwatch: { matchId: watch.matchId } }).catch(() => {});
    };
  }

  /**
   * Sends a request, again after a broken connection, and resolves to its result.
   * @param {any} frame
   * @returns {Promise<any>}
   */
  ask(frame) {
    const requestId = unique();
    return new Promise((done, failed) => {
      this.#asked.set(requestId, { frame: { requestId, ...frame }, done, failed });
      this.#send({ requestId, ...frame });
    });
  }

  async #open() {
    const turn = ++this.#opens;
    this.#become("opening");
    let socket;
    try {
      // After some failures the token may be why: a handshake does not say.
      const bearer = await token(this.#failures % 4 === 2 ? session.now?.accessToken : undefined);
      if (turn !== this.#opens || this.state !== "opening") return;
      socket = new WebSocket(`${location.origin.replace("http", "ws")}/v1/live`, ["gloaming.v1.json", `bearer.${bearer}`]);
    } catch {
      if (turn !== this.#opens) return;
      if (session.now) this.#lost();
      else this.#become("off");
      return;
    }
    this.#socket = socket;
    this.#timers.retry = setTimeout(() => this.#lost(), OPENS_WITHIN);
    socket.onopen = () => socket === this.#socket && this.#opened();
    socket.onmessage = ({ data }) => socket === this.#socket && this.#read(data);
    socket.onclose = ({ code }) => socket === this.#socket && this.#lost(code);
  }

  #opened() {
    clearTimeout(this.#timers.retry);
    this.#heard = performance.now();
    this.#roundTrips = [];
    this.#become("open");
    // What had no answer is asked again under its own name, after the matches that it is about.
    const again = [...this.#asked.values()]
      .map(({ frame }) => frame)
      .filter((frame) => !frame.watch && !frame.unwatch && !frame.authenticate);
    for (const [requestId, { frame }] of this.#asked) if (!again.includes(frame)) this.#asked.delete(requestId);
    for (const watch of this.#watches.values()) this.#watch(watch);
    for (const frame of again) this.#send(frame);
    this.#timers.ping = setInterval(() => this.#beat(), PING_EVERY);
    this.#ping();
    this.#renewLater();
  }

  #watch(watch) {
    this.ask({ watch: { matchId: watch.matchId, after: watch.after } }).catch((problem) => {
      if (problem.status === 503 || problem.status === 429) setTimeout(() => this.#lost(1013), 0);
      else watch.onproblem(problem);
    });
  }

  #send(frame) {
    if (this.state === "open") this.#socket.send(JSON.stringify(frame));
  }

  #read(data) {
    this.#heard = performance.now();
    for (const message of JSON.parse(data).messages) {
      const [kind] = Object.keys(message);
      this.#on[kind]?.(message[kind]);
    }
  }

  #on = {
    ping: ({ nonce }) => this.#send({ pong: { nonce } }), // first and at once: this is how the server measures the line
    pong: ({ nonce }) => {
      this.#failures = 0; // only now: a socket may open and be closed at once, again and again
      this.#roundTrips.push(performance.now() - (this.#pings.get(nonce) ?? NaN));
      this.#roundTrips = this.#roundTrips.filter(Number.isFinite).slice(-ROUND_TRIPS);
      this.#pings.delete(nonce);
    },
    event: (event) => {
      const watch = this.#watches.get(event.matchId);
      if (!watch) return;
      watch.after = event.cursor;
      watch.onevent(event);
    },
    snapshot: ({ matchId, match }) => {
      const watch = this.#watches.get(matchId);
      if (!watch) return;
      watch.after = match.cursor;
      watch.onsnapshot(match);
    },
    result: (result) => this.#answer(result.requestId)?.done(result),
    problem: (problem) => this.#answer(problem.requestId)?.failed(new Refused(problem)),
    room: (room) => this.rooms.forEach((tell) => tell(room)),
    ticket: (ticket) => this.tickets.forEach((tell) => tell(ticket)),
    draining: () => this.#lost(1012),
  };

  #answer(requestId) {
    const asked = this.#asked.get(requestId);
    this.#asked.delete(requestId);
    return asked;
  }

  #beat() {
    if (performance.now() - this.#heard > SILENT) this.#lost(1001);
    else this.#ping();
  }

  #ping() {
    const nonce = unique();
    this.#pings = new Map([[nonce, performance.now()]]);
    this.#send({ ping: { nonce } });
  }

  #renewLater() {
    this.#timers.renew = setTimeout(
      async () => {
        try {
          await this.ask({ authenticate: { accessToken: await token() } });
          this.#renewLater();
        } catch {
          if (this.state === "open") this.#lost(1008);
        }
      },
      Math.min(renewIn() + 50, 2 ** 31 - 1),
    );
  }

  /** The line is gone: try again after a wait that doubles, at random within it, so that not all come back at the same moment. */
  #lost(code = 1006) {
    if (this.state === "off" || this.state === "away") return;
    this.#drop();
    this.#failures++;
    const most = code === 1012 ? FIRST_WAIT : Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures);
    const wait = most * (0.5 + Math.random() / 2);
    this.#become("away", wait);
    this.#timers.retry = setTimeout(() => this.#open(), wait);
  }

  #hurry() {
    if (this.state !== "away") return;
    clearTimeout(this.#timers.retry);
    this.#open();
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    clearTimeout(this.#timers.retry);
    clearTimeout(this.#timers.renew);
    clearInterval(this.#timers.ping);
    socket?.close();
  }

  #become(state, wait = 0) {
    this.state = state;
    this.onstate(state, wait);
  }
}

export const live = new Live();
