/**
 * Night Knight: everybody's cards round the pillow in the middle, and a button for each thing that a hand can do. It is a race: a reaction is
 * sent when a finger comes down, not when it goes up, and Space is the pillow.
 */

import { button, emblem, h, icon, plural, svg } from "../dom.js";
import { apply, asked, did, event, first, KINDS, race, scoring } from "./night_knight_tale.js";

const TICK = 100;
const GRABS = { SLEEP: "Sleep", SHIELD: "Shield", THROW: "Throw", TOUCH: "Touch" };
const BADGES = { SHIELD: "shield up", SLEEP: "asleep", TOUCH: "touched", PASS: "hands off" };
const PILLOW = "M5 9c9 5 61 5 70 0-5 9-5 33 0 42-9-5-61-5-70 0 5-9 5-33 0-42z";

/** The round that the viewer has reacted to, before the server says what came of it. */
let sent = "";
/** Since when this page has seen the phase, for as long as the server has not said when it ends. */
let since = { phase: "", at: 0 };

const key = ({ view }) => `${location.hash} ${view.round}`;
const mine = ({ view, me }) => view.cards.find(({ seat }) => seat === me)?.card;
const reaction = ({ view }, seat) => view.reactions.find((each) => each.seat === seat);

/** Whether the viewer may react now. */
const open = (table) =>
  table.me != null &&
  !table.replay &&
  table.view.phase === "ACTION" &&
  !table.seats[table.me].resigned &&
  !table.view.out.includes(table.me) &&
  !reaction(table, table.me) &&
  sent !== key(table);

async function react(table, action, target) {
  if (!open(table)) return;
  sent = key(table);
  const taken = await table.play({ react: { round: table.view.round, action, ...(target == null ? {} : { target }) } });
  if (taken !== false) return;
  sent = "";
  table.redraw();
}

/** The pillow does what one's card asks for. Who does not see a card yet, or has a King, can but touch it (NK-11). */
const grab = (table) => {
  const { does } = KINDS[mine(table)] ?? {};
  return !does || does === "PASS" ? "TOUCH" : does;
};

/** Listeners for what is done at once: when a pointer comes down, or by a key. */
const quick = (act) => ({
  onpointerdown: (event) => event.button === 0 && act(),
  onclick: act,
});

addEventListener("keydown", (event) => {
  const stage = document.querySelector(".night-knight .stage");
  const at = document.activeElement;
  const elsewhere = at.matches("input, select, textarea") || (at.matches("button, a, summary") && !stage?.contains(at));
  if (!stage || elsewhere || document.querySelector("dialog[open]") || event.repeat || event.ctrlKey || event.metaKey || event.altKey)
    return;
  if (event.key === " " && !at.matches(".seat")) {
    event.preventDefault();
    stage.querySelector(".pillow:not(:disabled)")?.click();
  }
  if (/^\d$/.test(event.key)) document.querySelector(`.night-knight [data-digit="${event.key}"]:not(:disabled)`)?.click();
});

/** @param {import("../game.js").Table} table */
function board(table) {
  const { view, me } = table;
  const count = view.pileSizes.length;
  const from = me ?? 0;
  return h(
    "div",
    { class: `night-knight phase-${view.phase.toLowerCase()}` },
    h(
      "div",
      { class: "stage", role: "group", "aria-label": `Round ${view.round}`, "data-count": count },
      Array.from({ length: count }, (_, index) => place(table, (from + index) % count, index)),
      h("div", { class: "middle" }, timer(table), pillow(table)),
    ),
    h("div", { class: "dock" }, choices(table)),
    race(table),
  );
}

/** A seat with its card. `index` is 0 for the viewer, then clockwise. */
function place(table, seat, index) {
  const { view, me, name } = table;
  const angle = Math.PI * (0.5 + (2 * index) / view.pileSizes.length);
  const revealed = view.cards.find((each) => each.seat === seat);
  const result = ["RESOLUTION", "FINISHED"].includes(view.phase) && view.lastRound?.results.find((each) => each.seat === seat);
  const isTarget = seat !== me && open(table) && mine(table) === "ATTACKING_KNIGHT";
  const shown = KINDS[revealed?.card];
  const [badge, look] = badges(table, seat, result);
  const props = {
    class: `seat seat-${seat} ${isTarget ? "playable" : ""} ${seat === me ? "me" : ""}`,
    vars: { "--x": `${50 + 36 * Math.cos(angle)}%`, "--y": `${49.4 + 32.6 * Math.sin(angle)}%` },
    "data-key": `seat-${seat}`,
  };
  const inside = [
    h("span", { class: "name" }, emblem(seat), h("b", {}, seat === me ? "You" : table.seats[seat].name)),
    h(
      "span",
      { class: `card ${shown ? "" : "down"}` },
      shown
        ? [icon(shown.icon, "character"), h("span", { class: "what" }, shown.short)]
        : h("span", { class: "what" }, revealed ? "?" : ""),
      h("span", { class: "pile", title: `${plural(view.pileSizes[seat], "card")} left` }, view.pileSizes[seat]),
    ),
    h("span", { class: `badge ${look}` }, badge),
  ];
  if (isTarget)
    return h(
      "button",
      {
        type: "button",
        ...props,
        "aria-label": `Throw at ${name(seat)}, ${shown?.name ?? ""}`,
        "data-digit": index,
        ...quick(() => react(table, "THROW", seat)),
      },
      inside,
      h("kbd", { "aria-hidden": "true" }, index),
    );
  const words = [
    name(seat),
    shown?.name ?? (view.out.includes(seat) ? "out" : "card not shown"),
    plural(view.pileSizes[seat], "card"),
    badge,
  ].filter(Boolean);
  return h("div", { ...props, role: "img", "aria-label": words.join(", ") }, inside);
}

function badges(table, seat, result) {
  const { view, me } = table;
  if (view.out.includes(seat) && !result) return ["peeked: out", "wrong"];
  if (result) return result.right ? ["✓ right", "right"] : ["✗ wrong", "wrong"];
  const done = reaction(table, seat);
  if (!done) return seat === me && sent === key(table) && view.phase === "ACTION" ? ["sent…", ""] : ["", ""];
  if (done.verdict === "TOO_LATE") return ["too late", "wrong"];
  return [
    done.action === "THROW" ? `→ ${done.target === me ? "you" : table.name(done.target)}` : BADGES[done.action],
    done.action.toLowerCase(),
  ];
}

/** How long a phase lasts as a rule, in ms. */
const lasts = ({ view, options }) =>
  view.phase === "ACTION" ? options.actionMs + (options.ordering === "COMPENSATED" ? options.maxCompensationMs : 0) : options.countdownMs;

/** A ring that runs out with the phase, and the seconds in it. */
function timer(table) {
  const { view } = table;
  const phase = `${key(table)} ${view.phase}`;
  if (since.phase !== phase) since = { phase, at: table.now() };
  if (table.replay || view.phase === "FINISHED") return null;
  const total = lasts(table);
  const ends = view.phaseEndTime ? Date.parse(view.phaseEndTime) : since.at + total;
  const left = () => Math.max(0, ends - table.now());
  const seconds = h("span", { class: "seconds", "aria-hidden": "true" });
  const tell = () => (seconds.textContent = (left() / 1000).toFixed(1));
  tell();
  const ticking = setInterval(() => (seconds.isConnected ? tell() : clearInterval(ticking)), TICK);
  return [
    svg(
      "svg",
      {
        class: "ring",
        viewBox: "0 0 100 100",
        "aria-hidden": "true",
        vars: { "--total": `${total}ms`, "--gone": `${Math.round(left() - total)}ms` },
      },
      svg("circle", { class: "track", cx: 50, cy: 50, r: 47 }),
      svg("circle", { class: "left", cx: 50, cy: 50, r: 47, pathLength: 100 }),
    ),
    seconds,
  ];
}

function pillow(table) {
  const { view, ui } = table;
  const can = open(table);
  const action = grab(table);
  const aims = can && action === "THROW";
  const words = can
    ? aims && ui.aims
      ? "At whom?"
      : GRABS[action]
    : view.phase === "COUNTDOWN"
      ? "Ready?"
      : view.pillowsLeft
        ? view.phase === "ACTION"
          ? "The pillow"
          : ""
        : "All taken";
  const act = () => (aims ? (Object.assign(ui, { aims: true }), table.redraw()) : react(table, action));
  return h(
    "button",
    {
      type: "button",
      class: `pillow ${can ? "playable" : ""}`,
      "data-key": "pillow",
      disabled: !can,
      "aria-label": can
        ? aims
          ? "Take the pillow to throw it: choose at whom"
          : `${GRABS[action]}: take the pillow`
        : `${plural(view.pillowsLeft, "pillow")} in the middle`,
      "aria-keyshortcuts": "Space",
      ...quick(act),
    },
    svg(
      "svg",
      { viewBox: "0 0 80 60", "aria-hidden": "true", class: view.pillowsLeft ? "" : "none" },
      view.pillowsLeft > 1 ? svg("path", { class: "cushion under", d: PILLOW, transform: "rotate(-14 40 30)" }) : null,
      svg("path", { class: "cushion", d: PILLOW }),
      view.pillowsLeft ? svg("path", { class: "seam", d: "M14 15c6 2 46 2 52 0M14 45c6-2 46-2 52 0" }) : null,
    ),
    h("span", {}, words),
  );
}

function choices(table) {
  const { view, me } = table;
  if (me == null || table.replay || table.seats[me].resigned || view.phase === "FINISHED") return null;
  const can = open(table);
  const peeks = view.phase === "COUNTDOWN" && view.round && !view.out.includes(me);
  return h(
    "div",
    { class: "choices" },
    h(
      "button",
      {
        type: "button",
        class: `hands-off ${can ? "playable" : ""}`,
        "data-key": "hands-off",
        "data-digit": 0,
        disabled: !can,
        ...quick(() => react(table, "PASS")),
      },
      icon(
        "M8 11V4.5a1.5 1.5 0 0 1 3 0V10h.5V3a1.5 1.5 0 0 1 3 0v7h.5V4.5a1.5 1.5 0 0 1 3 0V15c0 4-2.5 7-6.5 7-3 0-4.8-1.5-6-4l-2.7-5.5a1.5 1.5 0 0 1 2.6-1.5z",
      ),
      "Hands off",
      h("kbd", { "aria-hidden": "true" }, "0"),
    ),
    peeks
      ? button("Peek at your card", () => table.play({ peek: { round: view.round } }), {
          class: "subtle",
          title: "It costs you the round (NK-05)",
          "data-key": "peek",
        })
      : null,
  );
}

/** @param {import("../game.js").Table} table */
function prompt(table) {
  const { view, me, ui } = table;
  const { phase, round } = view;
  if (phase === "COUNTDOWN") {
    if (view.out.includes(me)) return "You looked too early: you are out for this round (NK-05).";
    return `Round ${round}: ${me == null ? "the cards are about to be turned." : "watch the cards. The pillow is yours to grab, or not."}`;
  }
  if (phase === "ACTION") {
    if (me == null) return `Round ${round}: who reacts?`;
    if (view.out.includes(me)) return "You are out for this round.";
    const done = reaction(table, me);
    if (done) return done.verdict === "TOO_LATE" ? "Too late: the middle was empty." : `You ${did(done, table)}.`;
    if (sent === key(table)) return "Sent. It is decided once nothing earlier can be under way.";
    const card = mine(table);
    if (!card) return "Watch the others’ cards. Before you see yours, a grab is only a touch.";
    return ui.aims && card === "ATTACKING_KNIGHT" ? "At whom? Tap a defending knight." : KINDS[card].help;
  }
  if (phase !== "RESOLUTION" || !view.lastRound) return "";
  const result = view.lastRound.results.find((each) => each.seat === me);
  if (!result) return `Round ${round} is over.`;
  if (result.right) return "Right! Your card is out of the game.";
  const would = result.card ? ` Right was: ${asked(result, view.lastRound.cards)}.` : "";
  return `Wrong (${result.rule}): your card stays.${would}`;
}

const note = ({ view }, seat) => (view.pileSizes[seat] ? `${plural(view.pileSizes[seat], "card")} left` : "no card left");

function art() {
  return svg(
    "svg",
    { viewBox: "0 0 160 90", "aria-hidden": "true" },
    svg("circle", { cx: 128, cy: 22, r: 12, class: "moon" }),
    svg("path", { class: "far", d: "M0 90V30h8v6h8v-6h8v6h8v-6h8v36h80V30h8v6h8v-6h8v6h8v-6h8v60z" }),
    svg("path", { class: "near", d: "M0 90V74c50-7 110-7 160 0v16z" }),
    svg("path", { class: "lit", d: PILLOW, transform: "translate(46 30) scale(.85)" }),
    svg("path", { class: "near", d: "M80 44c2 1.5 4 2 6 2 0 6-2 10-6 13-4-3-6-7-6-13 2 0 4-.5 6-2z" }),
  );
}

/** @type {import("../game.js").Game} */
export default {
  id: "night_knight",
  title: "Night Knight",
  tagline: "Cards are turned, and one pillow lies in the middle. Grab it, or do not: but be quick about it.",
  seats: [3, 6],
  turns: false,
  options: [
    { name: "squire", label: "Squire mode", kind: "check", value: false, help: "Easier: without the Kings of Silence." },
    { name: "actionMs", label: "Time to react, in ms", kind: "number", value: 4000, min: 500, max: 30000, step: 100 },
    { name: "ownCardDelayMs", label: "Your own card comes later by, in ms", kind: "number", value: 150, min: 0, max: 2000, step: 50 },
    { name: "countdownMs", label: "Countdown, in ms", kind: "number", value: 2000, min: 0, max: 10000, step: 100 },
    {
      name: "ordering",
      label: "Who was first",
      kind: "choice",
      value: "COMPENSATED",
      choices: [
        ["COMPENSATED", "The line’s delay is given back"],
        ["ARRIVAL", "Whoever reaches the server first"],
      ],
    },
    { name: "maxCompensationMs", label: "Given back at most, in ms", kind: "number", value: 150, min: 0, max: 300, step: 10 },
  ],
  rules: [
    {
      title: "The idea",
      items: [
        ["NK-02", "Three players fight over one pillow, four to six over two."],
        ["NK-04", "All turn a card at the same moment. Whoever turns it is the last to see it."],
        ["NK-10", "You react once a round: take a pillow for what your card asks, or keep your hands off."],
        ["NK-15", "Right, and the card is out of the game. Wrong or too slow, and it goes to the bottom of your pile."],
        ["NK-16", "Whoever has no card left wins."],
      ],
    },
    {
      title: "The characters",
      items: [
        ["NK-06", "King of Silence: as soon as one is out, hands off is right for everybody."],
        ["NK-07", "Attacking knight: throw at anybody who is a defending knight. None there: hands off."],
        ["NK-08", "Defending knight: hold a pillow up if anybody attacks, at whomever. Nobody does: hands off."],
        ["NK-09", "Sleeping dragon: sleep on a pillow."],
      ],
    },
    {
      title: "Mind",
      items: [
        ["NK-05", "To look at your card before the others costs you the round."],
        ["NK-11", "A hand on a pillow without a use for it is a touch, and always wrong."],
        ["NK-12", "Whoever finds the middle empty is too late, which counts as hands off."],
        ["NK-13", "A round ends when the last pillow is gone, all have reacted, or the time is up."],
        [
          "NK-19",
          "The server’s clock decides who was first. Your line’s delay can be given back, up to a limit; below the board it says so for every reaction.",
        ],
      ],
    },
    {
      title: "On a keyboard",
      items: [
        ["Space", "The pillow."],
        ["1–5", "Throw at that player, clockwise from you."],
        ["0", "Hands off."],
      ],
    },
  ],
  art,
  board,
  prompt,
  note,
  event,
  first,
  apply,
  scoring,
};
