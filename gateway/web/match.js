/** The screen of a match: played, watched, or, once it is over, replayed. */

import { call, session } from "./api.js";
import { button, clock, emblem, h, listed, plural, shape, signed } from "./dom.js";
import { gameOf, load } from "./game.js";
import { live } from "./live.js";
import { calm, complain, confirm, doing, notice, rules, swap } from "./page.js";

const PAGE = 500;
/** Events that come together are drawn and asked about together, in ms. */
const TOGETHER = 60;
const HURRY = 10_000;
const REPLAY_STEP = 1100;

const ENDINGS = {
  RESIGNED: "by resignation",
  ABANDONED: "given up, since nobody played on",
};

/** What happened in a match so far, each event with the view before it, folded from the first one. */
class Story {
  /** @param {import("./game.js").Game} game @param {any} match @param {any} record */
  constructor(game, match, record) {
    this.game = game;
    this.match = match;
    /** @type {{cursor: string, version: number, time: string, event: any, view: any, words: string | null}[]} */
    this.lines = [];
    this.view = game.first(match, record);
  }

  /** @param {any} told an event as the API tells it */
  add({ cursor, version, time, event }, table) {
    const words = said(event, table) ?? this.game.event(event, table);
    this.view = this.game.apply(this.view, event, table.me);
    this.lines.push({ cursor, version, time, event, view: this.view, words });
  }
}

/** What the page itself tells of, whatever the game. */
function said(event, table) {
  if (event.matchFinished) return `The match is over: ${result(event.matchFinished.outcome, table)}.`;
  if (!event.seatChanged) return null;
  const { seat, resigned, standIn, connected, bot } = event.seatChanged.seat;
  const before = table.seats[seat];
  if (!before || bot === "STANDARD") return null;
  if (resigned && !before.resigned) return `${table.name(seat)} resigned.`;
  if (standIn !== before.standIn)
    return standIn ? `A bot plays for ${seat === table.me ? "you" : table.name(seat)} for now.` : `${table.name(seat)} took the seat back.`;
  if (seat === table.me || resigned || connected === before.connected) return null;
  return `${table.name(seat)} ${connected ? "is here" : "is away"}.`;
}

/** @param {any} outcome @param {import("./game.js").Table} table */
function result({ winners, ending }, { name, me }) {
  if (ending === "ABANDONED") return ENDINGS.ABANDONED;
  const by = ENDINGS[ending] ? ` ${ENDINGS[ending]}` : "";
  if (!winners.length) return "nobody wins";
  if (winners.length > 1) return `${listed(winners.map(name))} share the win${by}`;
  return `${name(winners[0])} ${winners[0] === me ? "win" : "wins"}${by}`;
}

/** Two may have the same name, or somebody that of oneself here: then the emblem tells them apart. */
const namer = (seats, me) => (seat) => {
  if (seat === me) return "You";
  const { name } = seats[seat];
  const twice = name.toLowerCase() === "you" || seats.some((other) => other.seat !== seat && other.name === name);
  return twice ? `${name} (${shape(seat)})` : name;
};

/**
 * Shows a match.
 * @param {HTMLElement} main
 * @param {string} id
 * @param {boolean} replay
 * @returns {Promise<() => void>} what ends it
 */
export async function showMatch(main, id, replay) {
  const game = await load(gameOf(id));
  if (!game) throw new Error("This page does not know the game of this match.");
  const screen = new Screen(main, game, id, replay);
  await screen.begin();
  return () => screen.end();
}

class Screen {
  constructor(main, game, id, replay) {
    Object.assign(this, { main, game, id, replay });
    this.path = `/matches/${id}`;
    this.legal = { version: 0, moves: [] };
    this.ui = {};
    this.pressed = false;
    this.undrawn = false;
    this.played = false;
    this.busy = false;
    this.step = 0;
    this.scored = 0;
    this.skew = 0;
    this.timers = { tick: 0, soon: 0, play: 0 };
    this.ended = new AbortController();
  }

  async begin() {
    this.take(await this.get(""));
    await this.read();
    this.build();
    this.draw();
    this.timers.tick = setInterval(() => this.tick(), 250);
    if (this.replay) return;
    this.watch();
    await this.refresh();
  }

  watch() {
    this.unwatch = live.watch({
      matchId: this.id,
      after: this.story.lines.at(-1)?.cursor ?? this.match.cursor,
      onevent: (event) => this.heard(event),
      onsnapshot: (match) => this.restart(match).catch(complain),
      onproblem: complain,
    });
  }

  end() {
    this.ended.abort();
    this.unwatch?.();
    clearInterval(this.timers.tick);
    clearTimeout(this.timers.soon);
    clearInterval(this.timers.play);
  }

  get = (rest) => call("GET", this.path + rest, undefined, { signal: this.ended.signal });

  take(match) {
    this.match = match;
    // Whoever resigned watches from then on; what they did was theirs all the same.
    this.me = match.seats.find((seat) => seat.player === session.now?.player.id)?.seat ?? null;
    this.skew = Date.parse(match.serverTime) - Date.now();
  }

  /** Reads all that happened so far. */
  async read() {
    const finished = this.match.status === "FINISHED";
    this.record = this.replay && finished ? await this.get("/record") : null;
    this.seats = this.match.seats.map((seat) => ({ ...seat, resigned: false, standIn: false, connected: true }));
    this.story = new Story(this.game, this.match, this.record);
    for (let after = "", more = true; more;) {
      const page = await this.get(`/events?pageSize=${PAGE}&after=${after}`);
      for (const event of page.events) this.add(event);
      ({ more, nextCursor: after } = page);
    }
    this.steps = steps(this.story.lines, this.game.turns !== false);
    if (this.replay) this.step = 0;
  }

  /** The cursor did not fit the match's history any more: begin anew. */
  async restart(match) {
    this.unwatch();
    this.take(match);
    await this.read();
    if (this.ended.signal.aborted) return;
    this.list.replaceChildren();
    this.watch();
    await this.refresh();
  }

  add(event) {
    this.story.add(event, this.table(this.story.view, this.seats));
    const changed = event.event.seatChanged?.seat;
    if (changed) this.seats = this.seats.map((seat) => (seat.seat === changed.seat ? changed : seat));
  }

  heard(event) {
    if (this.story.lines.at(-1)?.cursor === event.cursor) return;
    this.add(event);
    const { seatChanged, matchFinished } = event.event;
    if (seatChanged) this.match.seats = this.match.seats.map((seat) => (seat.seat === seatChanged.seat.seat ? seatChanged.seat : seat));
    if (matchFinished) {
      this.match = { ...this.match, toMove: [] };
      this.played = true; // here and now: the result comes into sight by itself
    }
    clearTimeout(this.timers.soon);
    this.timers.soon = setTimeout(() => this.refresh().catch(complain), TOGETHER);
    this.draw();
  }

  /** Asks how it stands: the match, and what may be done. */
  async refresh() {
    const match = await this.get("");
    const mine = match.viewerSeat != null && match.toMove.includes(match.viewerSeat);
    const legal = mine ? await this.get("/moves") : { version: match.version, moves: [] };
    if (match.version < this.match.version) return;
    this.take(match);
    if (legal.version !== this.legal.version) this.ui = {};
    this.legal = legal;
    this.draw();
  }

  /** The view now: the one that the server gave last, and on it what happened since. */
  view() {
    const { lines } = this.story;
    if (this.replay) return lines[this.steps[this.step]]?.view ?? this.story.view;
    const at = lines.findLastIndex((line) => line.cursor === this.match.cursor);
    if (at < 0) return this.match.view;
    return lines.slice(at + 1).reduce((view, { event }) => this.game.apply(view, event, this.me), this.match.view);
  }

  /** @returns {import("./game.js").Table} */
  table(view = this.view(), seats = this.match.seats) {
    const last = this.story?.lines.at(-1)?.version ?? 0;
    // Where several are to move, what one of them does takes nothing from the others.
    const atOnce = this.game.turns !== false && this.match.toMove.length > 1;
    const holds = !this.busy && !this.replay && (atOnce || this.legal.version >= last);
    return {
      view,
      me: this.me,
      seats,
      toMove: this.replay ? [] : this.match.toMove,
      options: this.match.options,
      legal: holds ? this.legal.moves : [],
      name: namer(seats, this.me),
      play: (move) => this.play(move),
      ui: this.ui,
      redraw: () => this.draw(),
      now: () => Date.now() + this.skew,
      roundTrip: () => live.roundTrip,
      replay: this.replay,
    };
  }

  /** @returns {Promise<boolean>} whether it was accepted */
  async play(move) {
    if (this.busy) return false;
    this.busy = true;
    this.ui = {};
    const before = this.legal;
    this.legal = { version: 0, moves: [] };
    this.draw();
    // Where one is to move, a move that comes late, as after a broken line, is not for a later turn.
    const inTurn = this.game.turns !== false && this.match.toMove.length === 1;
    let accepted = true;
    try {
      await live.ask({ move: { matchId: this.id, move, ...(inTurn ? { expectedVersion: before.version } : {}) } });
    } catch (error) {
      accepted = false;
      this.legal = before;
      if (error.reason === "VERSION_MISMATCH") notice("The match has gone on meanwhile: choose again.", 5000);
      else complain(error);
    }
    this.busy = false;
    await this.refresh().catch(complain);
    return accepted;
  }

  build() {
    const { game } = this;
    this.prompt = h("p", { class: "prompt", role: "status" });
    this.clock = h("time", { class: "clock", "data-seat": this.me ?? -1 });
    this.people = h("ul", { class: "people", "aria-label": "Players" });
    // A button that is drawn anew between press and release would not be clicked: what comes meanwhile is drawn after the release.
    const press = () => (this.pressed = true);
    this.board = h("div", { class: "board", tabindex: "-1", role: "region", "aria-label": "Board", onpointerdown: press });
    const { signal } = this.ended;
    for (const ends of ["pointerup", "pointercancel"]) addEventListener(ends, () => setTimeout(() => this.release()), { signal });
    this.final = h("section", { class: "final", "aria-label": "Result" });
    this.list = h("ol");
    this.log = h("div", { class: "log", role: "log", "aria-label": "What happened", tabindex: "0" }, this.list);
    this.tools = h("div", { class: "row tools" });
    this.stepper = this.replay ? this.buildStepper() : null;
    this.main.replaceChildren(
      h(
        "div",
        { class: "match" },
        h(
          "div",
          { class: "table" },
          h(
            "h1",
            { class: "title" },
            game.title,
            h("span", { class: "quiet" }, this.replay ? " · replay" : this.me == null ? " · watching" : ""),
          ),
          this.people,
          this.stepper,
          h("div", { class: "now" }, this.prompt, this.clock),
          this.final,
          this.board,
        ),
        h("aside", { class: "side", "aria-label": "The match" }, h("h2", {}, "What happened"), this.log, this.tools),
      ),
    );
  }

  release() {
    this.pressed = false;
    if (this.undrawn) this.draw();
  }

  draw() {
    this.undrawn = this.pressed;
    if (!this.board || this.pressed) return;
    const table = this.table();
    swap(this.board, this.game.board(table));
    this.drawPeople(table);
    this.drawPrompt(table);
    this.drawLog();
    this.drawFinal(table);
    this.drawTools();
    this.tick();
  }

  drawPeople(table) {
    const turns = this.game.turns !== false;
    this.people.replaceChildren(
      ...table.seats.map(({ seat, bot, resigned, standIn, connected }) => {
        const here =
          bot === "STANDARD" || this.replay || this.match.status === "FINISHED"
            ? ""
            : resigned
              ? "resigned, a bot plays on"
              : standIn
                ? "a bot stands in"
                : connected
                  ? ""
                  : "away";
        const moves = turns && table.toMove.includes(seat);
        return h(
          "li",
          { class: `person seat-${seat} ${seat === table.me ? "me" : ""} ${moves ? "to-move" : ""} ${here ? "gone" : ""}`, "aria-current": moves ? "true" : null },
          emblem(seat),
          h(
            "span",
            { class: "who" },
            h("b", {}, seat === table.me ? `${table.seats[seat].name} (you)` : table.name(seat)),
            h("span", { class: "quiet" }, [this.game.roles?.[seat], this.game.note(table, seat), here].filter(Boolean).join(" · ")),
          ),
          h("time", { class: "clock", "data-seat": seat }),
        );
      }),
    );
  }

  drawPrompt(table) {
    const mine = this.mine();
    const text = this.replay ? this.happened() : this.asked(table, mine);
    this.prompt.classList.toggle("mine", mine);
    if (this.prompt.textContent !== text) this.prompt.textContent = text;
    document.title = `${mine ? "Your turn · " : ""}${this.game.title} · Gloaming`;
  }

  /** Whether the match waits for the viewer. */
  mine() {
    return !this.replay && this.game.turns !== false && this.match.toMove.includes(this.match.viewerSeat);
  }

  /** What a replay has come to, in words. */
  happened() {
    let lines = this.story.lines.slice((this.steps[this.step - 1] ?? -1) + 1, this.steps[this.step] + 1);
    // How it came out is told step by step below.
    if (this.game.turns !== false && lines.some(({ event }) => event.matchFinished)) lines = lines.slice(0, 1);
    return lines
      .map((line) => line.words)
      .filter(Boolean)
      .join(" ");
  }

  /** What is to be done now, and by whom. */
  asked(table, mine) {
    const { toMove } = this.match;
    if (this.match.status === "FINISHED") return "";
    const asked = this.game.prompt(table);
    if (this.game.turns === false) return asked;
    if (mine && (table.legal.length || !asked)) return `Your turn. ${asked}`.trim();
    return asked || (toMove.length ? `${listed(toMove.map(table.name))} to move.` : "");
  }

  /** Adds what is new: what is there already is not read out again. */
  drawLog() {
    const until = this.replay ? this.steps[this.step] + 1 : this.story.lines.length;
    const lines = this.story.lines.slice(0, until).filter((line) => line.words);
    while (this.list.children.length > lines.length) this.list.lastChild.remove();
    const end = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 40;
    const began = Date.parse(this.story.lines[0]?.time);
    this.list.append(
      ...lines
        .slice(this.list.children.length)
        .map(({ words, time }) =>
          h("li", {}, h("time", { datetime: time, class: "quiet" }, clock(Date.parse(time) - began)), h("span", {}, words)),
        ),
    );
    if (end) this.log.scrollTop = this.log.scrollHeight;
  }

  drawFinal(table) {
    const over = this.match.outcome && (!this.replay || this.step === this.steps.length - 1);
    this.final.hidden = !over;
    if (!over || this.final.firstChild) return;
    const scoring = this.game.scoring(table);
    const { ranks } = this.match.outcome;
    const order = table.seats.map(({ seat }) => seat).sort((a, b) => ranks[a] - ranks[b]);
    const places = h(
      "ol",
      { class: "places" },
      order.map((seat) =>
        h(
          "li",
          { class: `seat-${seat}` },
          h("b", { class: "rank" }, `${ranks[seat]}.`),
          emblem(seat),
          h("span", {}, table.name(seat)),
          h("span", { class: "quiet" }, this.game.note(table, seat)),
        ),
      ),
    );
    const headline = result(this.match.outcome, table);
    if (this.played) this.final.scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
    this.final.replaceChildren(
      h("h2", {}, headline.charAt(0).toUpperCase() + headline.slice(1)),
      places,
      ...(scoring.length ? [this.buildScoring(scoring, table)] : []),
    );
  }

  /** The final scoring: a step at a time, the points adding up. */
  buildScoring(scoring, table) {
    const box = h("div", { class: "scoring" });
    const sums = (upTo) =>
      table.seats.map(({ seat }) => scoring.slice(0, upTo + 1).reduce((sum, each) => sum + (each.points[seat] ?? 0), 0));
    const show = (index) => {
      const { title, lines, points } = scoring[index];
      const total = points ? sums(index) : [];
      const move = (by, label) => button(label, () => show(index + by), { disabled: !scoring[index + by], "data-key": label });
      swap(
        box,
        h(
          "div",
          {},
          h(
            "div",
            { class: "row" },
            h("h3", { "aria-live": "polite" }, `${points ? "Scoring" : "The end,"} ${index + 1} of ${scoring.length}: ${title}`),
            h("span", { class: "row" }, move(-1, "Back"), move(1, "Next")),
          ),
          lines.map((line) => (line instanceof Node ? line : h("p", {}, line))),
          points &&
            h(
              "table",
              {},
              h(
                "thead",
                {},
                h("tr", {}, h("th", { scope: "col" }, "Player"), h("th", { scope: "col" }, "Here"), h("th", { scope: "col" }, "So far")),
              ),
              h(
                "tbody",
                {},
                table.seats.map(({ seat }) =>
                  h(
                    "tr",
                    { class: `seat-${seat}` },
                    h("th", { scope: "row" }, emblem(seat), table.name(seat)),
                    h("td", {}, points[seat] == null ? "–" : signed(points[seat])),
                    h("td", {}, signed(total[seat])),
                  ),
                ),
              ),
            ),
        ),
      );
    };
    show(0);
    return box;
  }

  drawTools() {
    const over = this.match.status === "FINISHED";
    const plays = this.match.viewerSeat != null;
    const state = `${over} ${this.me} ${plays}`;
    if (this.tools.dataset.state === state) return;
    this.tools.dataset.state = state;
    const resign = () =>
      confirm(
        "Resign?",
        this.match.seats.length > 2 ? "A bot plays on for you, and you are ranked last." : "The match ends, and you have lost it.",
        "Resign",
        () => call("POST", `${this.path}:resign`, {}).catch(complain),
      );
    const again = doing(async () => (location.hash = `#/match/${(await call("POST", `${this.path}:rematch`, {})).id}`));
    this.tools.replaceChildren(
      ...[
        over && this.me != null && button("Play again", again, { class: "primary" }),
        over && !this.replay && h("a", { class: "button", href: `#/replay/${this.id}` }, "Replay"),
        button("Rules", () => rules(this.game)),
        !over && plays && button("Resign", resign, { class: "subtle" }),
        h("a", { class: "button subtle", href: "#/" }, "Leave"),
      ].filter(Boolean),
    );
  }

  buildStepper() {
    const last = this.steps.length - 1;
    const slider = h("input", {
      type: "range",
      min: 0,
      max: last,
      value: 0,
      "aria-label": "Move",
      oninput: () => this.go(Number(slider.value)),
    });
    const to = (label, word, where) => button(label, () => this.go(where()), { "aria-label": word, title: word });
    const run = button("Play", () => this.run(), { class: "primary" });
    this.showStep = () => {
      slider.value = this.step;
      slider.setAttribute("aria-valuetext", `Move ${this.step} of ${last}: ${this.prompt.textContent}`);
      count.textContent = `${this.step} / ${last}`;
      run.textContent = this.timers.play ? "Pause" : "Play";
    };
    const count = h("span", { class: "count" });
    setTimeout(() => this.showStep());
    return h(
      "div",
      { class: "stepper" },
      run,
      to("«", "To the beginning", () => 0),
      to("‹", "Back a move", () => this.step - 1),
      slider,
      to("›", "On a move", () => this.step + 1),
      to("»", "To the end", () => last),
      count,
    );
  }

  go(step) {
    this.step = Math.max(0, Math.min(this.steps.length - 1, step));
    if (this.step === this.steps.length - 1) this.pause();
    this.draw();
    this.showStep();
  }

  run() {
    if (this.timers.play) this.pause();
    else {
      if (this.step === this.steps.length - 1) this.step = -1;
      this.timers.play = setInterval(() => this.go(this.step + 1), calm() ? 2 * REPLAY_STEP : REPLAY_STEP);
      this.go(this.step + 1);
    }
    this.showStep();
  }

  pause() {
    clearInterval(this.timers.play);
    this.timers.play = 0;
  }

  /** Clocks, by the server's time. */
  tick() {
    const now = Date.now() + this.skew;
    for (const place of [this.clock, ...this.people.querySelectorAll(".clock")]) {
      const { deadline } = this.match.seats[Number(place.dataset.seat)] ?? {};
      const left = deadline && !this.replay && this.match.status !== "FINISHED" ? Date.parse(deadline) - now : null;
      place.textContent = left === null ? "" : clock(left);
      place.classList.toggle("urgent", left !== null && left < HURRY);
    }
  }
}

/** At which lines a replay stops: after each move, which is a version; where there are no turns, at each line that is worth a word. */
function steps(lines, turns) {
  const stops = lines.flatMap((line, index) => ((turns ? line.version !== lines[index + 1]?.version : line.words) ? [index] : []));
  return stops.length ? stops : [0];
}
