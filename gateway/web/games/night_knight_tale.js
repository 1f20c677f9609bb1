/** Night Knight in words: the characters, what happened, the view after it, and who was first. */

import { emblem, h, listed, plural, svg } from "../dom.js";

export const KINDS = {
  SLEEPING_DRAGON: {
    name: "Sleeping dragon",
    short: "Dragon",
    rule: "NK-09",
    does: "SLEEP",
    help: "Sleep on the pillow. But a King is out? Hands off.",
    icon: "M3 19c-1.5-4 .5-8 4.5-8.5 0-2 1.5-3.5 3-4l-.5-3 2.5 2c3 0 5 1.5 6.5 4 1.5.5 2.5 2 2.5 3.5l-3.5 1.5-3-.5c1.5 1.5 2 3.5 1 5.5h4.5V21H4.5zM15 9.3l2 .5-1.5 1zM1.5 5h4v1.2L3.6 8h2v1.5H1.3V8.3l1.8-1.8H1.5z",
  },
  KING_OF_SILENCE: {
    name: "King of Silence",
    short: "King",
    rule: "NK-06",
    does: "PASS",
    help: "You are the King of Silence: hands off.",
    icon: "M3 4l4.5 4L12 2l4.5 6L21 4l-1.5 9h-15zM5 14.5h14V17H5zM11 18h2v4.5h-2z",
  },
  ATTACKING_KNIGHT: {
    name: "Attacking knight",
    short: "Attacker",
    rule: "NK-07",
    does: "THROW",
    help: "Throw at a defending knight: tap one. None, or a King out? Hands off.",
    icon: "M19.5 2H22v2.5L11.5 15 9 12.5zM5.5 11l7.5 7.5-1.5 1.5-2.7-2.7L5 21.2 2.8 19l3.9-3.8L4 12.5z",
  },
  DEFENDING_KNIGHT: {
    name: "Defending knight",
    short: "Defender",
    rule: "NK-08",
    does: "SHIELD",
    help: "Shield yourself if anybody attacks. No attacker, or a King out? Hands off.",
    icon: "M12 1.5c3 2 6 2.7 9 2.7 0 8.3-3 15-9 18.3C6 19.2 3 12.5 3 4.2c3 0 6-.7 9-2.7zm-1 4.3c-1.7.8-3.5 1.3-5.3 1.5.3 2.2.8 4.2 1.7 6H11zm2 0v7.5h3.6c.9-1.8 1.4-3.8 1.7-6-1.8-.2-3.6-.7-5.3-1.5z",
  },
};

const DONE = { SHIELD: "held a pillow up", SLEEP: "slept on a pillow", TOUCH: "touched a pillow", PASS: "kept hands off" };

const ASKED = { THROW: "throw at a defending knight", SHIELD: "hold a pillow up", SLEEP: "sleep on a pillow", PASS: "hands off" };

const VERDICTS = {
  GRANTED: "got a pillow",
  TOO_LATE: "was too late for one",
  TOUCHED: "only touched it, which is always wrong",
  PASSED: "hands off, as declared",
};

const WHY = {
  "NK-05": "a look too early",
  "NK-06": "a King is out",
  "NK-07": "as an attacker",
  "NK-08": "as a defender",
  "NK-09": "as a dragon",
  "NK-11": "a mere touch",
  "NK-14": "thrown at nobody who defends",
};

/** What is right for a character among those revealed (NK-06 to NK-09). */
export function right(kind, cards) {
  const among = (other) => cards.some(({ card }) => card === other);
  if (among("KING_OF_SILENCE")) return "PASS";
  if (kind === "ATTACKING_KNIGHT" && !among("DEFENDING_KNIGHT")) return "PASS";
  if (kind === "DEFENDING_KNIGHT" && !among("ATTACKING_KNIGHT")) return "PASS";
  return KINDS[kind].does;
}

/** What would have been right for a seat in a round, in words. */
export const asked = ({ card }, cards) => ASKED[right(card, cards)];

/** When a reaction counts, in ms since the reveal. */
export const counted = ({ evidence }) => evidence.receivedMs - evidence.compensationMs;

const you = (table, seat) => (seat === table.me ? "you" : table.name(seat));

/** What a seat did, in words: "threw a pillow at Ann". */
export const did = ({ action, target, verdict }, table) =>
  verdict === "TOO_LATE" && action !== "PASS"
    ? `reached for a pillow${action === "THROW" ? ` to throw at ${you(table, target)}` : ""}`
    : action === "THROW"
      ? `threw a pillow at ${you(table, target)}`
      : DONE[action];

const kindOf = ({ card }) => KINDS[card].name;

export function event(event, table) {
  const { name, me } = table;
  const [kind] = Object.keys(event);
  const { seat, round, cards, results } = event[kind];
  switch (kind) {
    case "roundStarted":
      return `Round ${round} begins.`;
    case "peeked":
      return `${name(seat)} looked at a card too early, and ${seat === me ? "are" : "is"} out for the round.`;
    case "cardsRevealed": {
      const seen = cards.filter(({ card }) => card);
      return seen.length ? `Revealed: ${listed(seen.map((each) => `${you(table, each.seat)}, ${kindOf(each)}`))}.` : null;
    }
    case "ownCardShown": {
      const mine = cards.filter((each) => each.card && (me == null || each.seat === me));
      return mine.length ? `Revealed: ${listed(mine.map((each) => `${you(table, each.seat)}, ${kindOf(each)}`))}.` : null;
    }
    case "reacted": {
      const { verdict } = event[kind];
      const late = verdict === "TOO_LATE" ? ", too late" : "";
      return `${name(seat)} ${did(event[kind], table)}${late}, ${counted(event[kind])} ms after the reveal.`;
    }
    case "roundResolved": {
      const good = results.filter((each) => each.right).map((each) => you(table, each.seat));
      const bad = results.filter((each) => !each.right).map((each) => `${you(table, each.seat)} (${WHY[each.rule]}, ${each.rule})`);
      return [good.length && `Right: ${listed(good)}.`, bad.length && `Wrong: ${listed(bad)}.`].filter(Boolean).join(" ");
    }
  }
  return null;
}

const pillows = (seats) => (seats > 3 ? 2 : 1);

export function first({ view, seats }) {
  const pile = seats.length > 4 ? 8 : 12;
  return {
    round: 0,
    phase: "COUNTDOWN",
    pillowsLeft: pillows(seats.length),
    cards: [],
    reactions: [],
    pileSizes: view.pileSizes.map(() => pile),
    out: [],
  };
}

export function apply(view, event) {
  const [kind] = Object.keys(event);
  const what = event[kind];
  const { phaseEndTime, ...rest } = view;
  switch (kind) {
    case "roundStarted":
      return {
        ...rest,
        round: what.round,
        phase: "COUNTDOWN",
        pillowsLeft: pillows(view.pileSizes.length),
        cards: [],
        reactions: [],
        out: [],
        pileSizes: what.pileSizes,
      };
    case "peeked":
      return { ...view, out: [...view.out, what.seat] };
    case "cardsRevealed":
      return { ...rest, phase: "ACTION", cards: what.cards };
    case "ownCardShown":
      return { ...view, cards: what.cards };
    case "reacted": {
      if (view.reactions.some(({ seat }) => seat === what.seat)) return view;
      const reactions = [...view.reactions, what];
      const last = view.phase === "RESOLUTION" && view.lastRound ? { lastRound: { ...view.lastRound, reactions } } : {};
      return { ...view, ...last, reactions, pillowsLeft: view.pillowsLeft - (what.verdict === "GRANTED" ? 1 : 0) };
    }
    case "roundResolved": {
      const { round, results } = what;
      const gone = new Set(results.filter((each) => each.right).map(({ seat }) => seat));
      return {
        ...rest,
        phase: "RESOLUTION",
        pileSizes: view.pileSizes.map((size, seat) => (gone.has(seat) ? size - 1 : size)),
        lastRound: { round, cards: view.cards, reactions: view.reactions, results },
      };
    }
    case "matchFinished":
      return { ...rest, phase: "FINISHED" };
  }
  return view;
}

/** Who was first in the last round, by how much, and why. */
export function race(table) {
  const { view, me, options, name } = table;
  const round = view.lastRound;
  const line = table.roundTrip();
  const measured = round?.reactions.find(({ seat }) => seat === me)?.evidence.roundTripMs;
  const mine = me != null && !table.replay && (line != null || measured != null);
  const delay =
    mine &&
    h(
      "p",
      { class: "delay quiet" },
      "Your line, there and back: ",
      h("b", {}, line == null ? "not measured yet" : `${Math.round(line)} ms`),
      " as this page measures it",
      measured == null ? "." : [", ", h("b", {}, `${measured} ms`), ` as the server did for round ${round.round}.`],
    );
  if (!round)
    return h(
      "section",
      { class: "race", "aria-label": "Who was first" },
      delay || h("p", { class: "quiet" }, "After each round it is told here who was first, by how much, and why."),
    );
  const order = round.reactions.toSorted((a, b) => a.rank - b.rank);
  const longest = Math.max(...order.map(({ evidence }) => evidence.receivedMs), 1);
  const idle = round.results.filter(({ seat }) => !order.some((each) => each.seat === seat));
  return h(
    "section",
    { class: "race", "aria-label": `Round ${round.round}: who was first` },
    h("h2", {}, `Round ${round.round}: ${headline(order, table)}`),
    h(
      "ol",
      {},
      order.map((each) => runner(each, round, order[0], longest, table)),
      idle.map((result) =>
        h(
          "li",
          { class: `seat-${result.seat}` },
          h("b", { class: "rank" }, "–"),
          h(
            "span",
            { class: "who" },
            emblem(result.seat),
            h("b", {}, name(result.seat)),
            result.rule === "NK-05" ? " looked too early" : " did nothing",
          ),
          judged(result, round),
        ),
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      options.ordering === "COMPENSATED"
        ? `Counted is the moment of receipt less the line’s round trip, of which at most ${options.maxCompensationMs} ms are given back (NK-19).`
        : "Counted is the moment of receipt: first come, first served (NK-19).",
    ),
    delay,
  );
}

/** Who had the first pillow, and how far behind the next hand was; the viewer's own, if it came too late. */
function headline(order, { name, me }) {
  const grabs = order.filter(({ action }) => action === "THROW" || action === "SHIELD" || action === "SLEEP");
  const first = grabs.find(({ verdict }) => verdict === "GRANTED");
  if (!first) return order.length ? "nobody took a pillow" : "nobody reacted";
  const behind = (other) => `${counted(other) - counted(first)} ms`;
  const who = `the first pillow went to ${first.seat === me ? "you" : name(first.seat)} after ${counted(first)} ms`;
  const mine = grabs.find(({ seat }) => seat === me);
  if (mine && mine !== first) return `${who}, and you ${behind(mine)} behind`;
  const next = grabs.find((each) => each !== first);
  return next ? `${who}, ${name(next.seat)} ${behind(next)} behind` : who;
}

/** A reaction of a round that is over, with its evidence. */
function runner(reaction, round, leader, longest, table) {
  const { seat, rank, verdict, evidence } = reaction;
  const { receivedMs, roundTripMs, compensationMs, capMs, rule } = evidence;
  const at = counted(reaction);
  const gap = at - counted(leader);
  const x = (ms) => (Math.max(ms, 0) / longest) * 190 + 5;
  const why = compensationMs
    ? `Received after ${receivedMs} ms; the line takes ${roundTripMs} ms, of which ${compensationMs} are given back (at most ${capMs}).`
    : `Received after ${receivedMs} ms; the line takes ${roundTripMs} ms, nothing is given back.`;
  return h(
    "li",
    { class: `seat-${seat}` },
    h("b", { class: "rank" }, `${rank}.`),
    h("span", { class: "who" }, emblem(seat), h("b", {}, table.name(seat)), ` ${did(reaction, table)}`),
    judged(
      round.results.find((each) => each.seat === seat),
      round,
    ),
    h(
      "div",
      { class: "time" },
      svg(
        "svg",
        { viewBox: "0 0 200 12", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("path", { class: "track", d: "M5 6H195" }),
        svg("path", { class: "run", d: `M5 6H${x(at)}` }),
        compensationMs ? svg("path", { class: "given", d: `M${x(at)} 6H${x(receivedMs)}` }) : null,
      ),
      h("b", {}, `${at} ms`),
      h("span", { class: "quiet" }, gap ? `+${gap}` : "first"),
    ),
    h("small", { class: "quiet" }, `${why} ${rule}: ${VERDICTS[verdict]}.`),
  );
}

function judged(result, round) {
  if (!result) return null;
  const words = result.right ? `✓ right` : `✗ wrong`;
  const detail = result.card ? `${KINDS[result.card].short}, ${result.rule}` : result.rule;
  const more = !result.right && result.card ? `: ${asked(result, round.cards)}` : "";
  return h("span", { class: `judged ${result.right ? "right" : "wrong"}` }, h("b", {}, words), ` ${detail}${more}`);
}

/** How it ended, a step at a time; there are no points. @param {import("../game.js").Table} table */
export function scoring(table) {
  const { view, name } = table;
  const { lastRound, pileSizes } = view;
  if (!lastRound) return [];
  const out = pileSizes.flatMap((size, seat) => (size ? [] : [seat]));
  const left = pileSizes.flatMap((size, seat) => (size ? [[size, seat]] : [])).sort(([a], [b]) => a - b);
  return [
    {
      title: `round ${lastRound.round}, the last`,
      lines: lastRound.results.map((result) =>
        h("p", { class: "night-knight-told" }, emblem(result.seat), h("b", {}, ` ${name(result.seat)} `), judged(result, lastRound)),
      ),
    },
    {
      title: "who has no card left",
      lines: [
        out.length
          ? `${listed(out.map(name))} got rid of every card, which wins${out.length > 1 ? " together" : ""} (NK-16).`
          : "Nobody got rid of every card: nobody wins.",
        left.length ? `Then by how few are left: ${listed(left.map(([size, seat]) => `${name(seat)} ${size}`))}.` : "",
      ].filter(Boolean),
    },
  ];
}
