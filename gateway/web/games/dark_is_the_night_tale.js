/** Dark Is the Night in words: what happened, the view after it, and how it ended. */

import { h, icon, listed, plural } from "../dom.js";

export const HUNTRESS = 0;
export const MONSTER = 1;
const LONGEST_NIGHT = 200;
/** The lit square that the Monster faces from each dark one (DN-05). */
export const FACES = [0, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 1];
export const SIDES = { NORTH: [1, 2, 3], EAST: [4, 5, 6], SOUTH: [7, 8, 9], WEST: [10, 11, 12] };
export const WAYS = { CLOCKWISE: 1, COUNTERCLOCKWISE: -1 };

const ICONS = {
  huntress:
    "M8.5 2.2a3 3 0 1 0 .01 0zM3.5 21c0-7 1.5-11.5 5-11.5 1.5 0 2.5.6 3.3 1.8h8.7V9.6l3 2.4-3 2.4v-1.7h-8c.7 2.3 1 5 1 8.3zM15 2.6c6 4.4 6 14.4 0 18.8l-1-1.2c4.8-3.8 4.8-12.6 0-16.4z",
  monster:
    "M2.5 1.5c0 4.5 1.5 6.5 3.7 7.5-1.6 2-1.7 4-1.2 6.2C6 19.5 8.8 22.5 12 22.5s6-3 7-7.3c.5-2.2.4-4.2-1.2-6.2 2.2-1 3.7-3 3.7-7.5-2.2 2-4.2 3.6-6.5 4.2-1-.5-2-.7-3-.7s-2 .2-3 .7C6.7 5.1 4.7 3.5 2.5 1.5zM7.5 11.5l4 2.3c-.8 1.9-4 1.3-4-2.3zm9 0c0 3.6-3.2 4.2-4 2.3zM8.5 17l1.7 1.2L12 17l1.8 1.2 1.7-1.2-1.2 3h-4.6z",
  fire: "M12 1c1 4.5 6.5 6.5 6.5 13a6.5 6.5 0 0 1-13 0c0-2.5 1-4.5 2.3-5.8.2 2.3 1 3.4 2.2 3.4C11 8.5 9.5 5 12 1z",
  sword: "M19.5 2H22v2.5L11.5 15 9 12.5zM5.5 11l7.5 7.5-1.5 1.5-2.7-2.7L5 21.2 2.8 19l3.9-3.8L4 12.5z",
  arrow: "M21.5 2.5 21 10l-2.6-2.6L8.4 17.4l.6 3.2-2 1.9-1.1-3.9L2 17.5l1.9-2 3.2.6 10-10L14.5 3.5z",
  bell: "M12 1.5a1.6 1.6 0 0 1 1.6 1.8C17 4.2 18.2 7 18.2 10c0 4 1 5.6 2.6 7.2H3.2C4.8 15.6 5.8 14 5.8 10c0-3 1.2-5.8 4.6-6.7A1.6 1.6 0 0 1 12 1.5zM9.5 18.7h5a2.5 2.5 0 0 1-5 0z",
  ham: "M14.5 2.5c4.8 0 7.9 4 6.9 9-1 4.8-7 7.2-11.4 5.8l-2.6 2.6c.5 1.7-1.6 2.9-2.7 1.5-1.5.2-2.2-1.4-1.4-2.5-1.2-1.2 0-3 1.7-2.5l2.7-2.6C6.5 8.5 9.5 2.5 14.5 2.5z",
  eye: "M12 5c5 0 9 3.5 10.8 7-1.8 3.5-5.8 7-10.8 7S3 15.5 1.2 12C3 8.5 7 5 12 5zm0 2.8a4.2 4.2 0 1 0 .01 0zm0 2.2a2 2 0 1 1-.01 0z",
  claws:
    "M5.5 2.5c2.3 6 2.3 13 0 19-1.5-6-1.5-13 0-19zm6.5 0c2.3 6 2.3 13 0 19-1.5-6-1.5-13 0-19zm6.5 0c2.3 6 2.3 13 0 19-1.5-6-1.5-13 0-19z",
  step: "M8 2.5c2.4 0 3.3 2.8 3 5.7-.3 2-.9 3.3-2.3 3.3-1.5 0-2.5-1.3-2.9-3.3C5.3 5.3 5.7 2.5 8 2.5zM6.7 13c1.3-.5 2.6-.5 3.6 0 .3 2-.3 3.6-1.6 3.6S6.6 15 6.7 13zM16 7.5c2.3 0 2.7 2.8 2.2 5.7-.4 2-1.4 3.3-2.9 3.3-1.4 0-2-1.3-2.3-3.3-.3-2.9.6-5.7 3-5.7zm-2.3 10.6c1-.5 2.3-.5 3.6 0 .1 2-.7 3.6-2 3.6s-1.9-1.6-1.6-3.6z",
};

export const draw = (name, more = "") => icon(ICONS[name], `${name} ${more}`);
export const lower = (word) => word.toLowerCase();
/** The dark square so many squares on, clockwise. */
export const around = (square, steps) => ((((square - 1 + steps) % 12) + 12) % 12) + 1;

/** Something announced: its icon, and in words. */
export function heard({ turn, ...said }) {
  const [kind] = Object.keys(said);
  const { square, side, cause, distance, direction, burning, hit } = said[kind];
  const kinds = {
    sideAnnounced: () => ["eye", `The Monster hid in the ${lower(side)}, on ${listed(SIDES[side].map(String))}.`],
    monsterSighted: () =>
      cause === "FEINT"
        ? ["eye", `Before its feint the Monster was on dark ${square}; it went on up to two squares.`]
        : ["eye", `The Monster stepped into the light on dark ${square}.`],
    bellRang: () => ["bell", `The bell rang on dark ${square}: the Monster was there.`],
    hamDistance: () => [
      "ham",
      distance
        ? `The Monster was ${plural(distance, "square")} from dark ${square}, where the ham was.`
        : `The Monster was at the ham, on dark ${square}.`,
    ],
    monsterAttacked: () => ["claws", `The Monster attacked lit ${square}${hit ? ", and the Huntress was there." : " in vain."}`],
    bellPlaced: () => ["bell", `The bell was put on dark ${square}.`],
    hamPlaced: () => ["ham", `The ham was put on dark ${square}.`],
    arrowShot: () => [
      burning ? "fire" : "arrow",
      `An arrow flew ${lower(direction)} to dark ${square}${hit ? " and hit." : burning ? " through the fire, and lit it up." : " and hit nobody."}`,
    ],
    swordSwung: () => ["sword", `The sword struck dark ${square}${hit ? " and hit." : " in vain."}`],
  };
  return kinds[kind]();
}

export function event(event, table) {
  const { me, name } = table;
  const [kind] = Object.keys(event);
  const { square, to, turnsLeft } = event[kind];
  const [she, it] = [name(HUNTRESS), name(MONSTER)];
  switch (kind) {
    case "nightFell":
      return `Night falls. ${she} ${me === HUNTRESS ? "are" : "is"} the Huntress, ${me === MONSTER ? "and you are" : it} the Monster.`;
    case "monsterHid":
      return `${it} hid${square ? ` on dark ${square}` : ""}.`;
    case "huntressCamped":
      return `${she} camped on lit ${square}.`;
    case "huntressMoved":
      return `${she} went to lit ${to}.`;
    case "monsterMoved":
      return table.view.ham
        ? `${it} went for the ham${to ? `, to dark ${to}` : ""}.`
        : `${it} moved${to ? ` to dark ${to}` : " in the dark"}.`;
    case "feintPlayed":
      return null;
    case "squareLit":
      return `Dark ${square} is lit up from now on.`;
    case "dawnNear":
      return `That was the last token: ${plural(turnsLeft, "turn")} to dawn.`;
    case "seatChanged":
    case "matchFinished":
      return null;
  }
  return heard({ turn: 0, ...event })[1];
}

/** Every square of the Monster in turn, as the record's moves tell: one for each `monsterHid` and `monsterMoved`. */
function trail(moves) {
  const path = [];
  let ham = 0;
  const go = (steps) => path.push(around(path.at(-1), steps));
  for (const { move } of moves) {
    if (move?.lair) path.push(move.lair.square);
    else if (move?.prowl) go(WAYS[move.prowl.direction]);
    else if (move?.feint) go(move.feint.steps ?? 0);
    else if (move?.lured) go(WAYS[move.lured.direction]);
    else if (move?.hunt?.ham) {
      ham = (move.hunt.ham.square - path.at(-1) + 12) % 12;
      if (ham !== 6) go(ham === 0 ? 0 : ham < 6 ? 1 : -1);
    }
  }
  return path;
}

export function first(match, record) {
  return {
    litSquares: [],
    feintLeft: true,
    turns: 0,
    announcements: [],
    tokens: { arrows: 2, bell: true, ham: true },
    trail: record ? trail(record.moves) : [],
    gone: 0,
  };
}

const TOLD = [
  "sideAnnounced",
  "monsterSighted",
  "bellRang",
  "hamDistance",
  "monsterAttacked",
  "bellPlaced",
  "hamPlaced",
  "arrowShot",
  "swordSwung",
];

export function apply(view, event) {
  const [kind] = Object.keys(event);
  const what = event[kind];
  const { tokens } = view;
  const turns =
    view.turns + (kind === "huntressMoved" || what.cause === "FEINT" || (kind === "monsterMoved" && !view.ham && !view.feints) ? 1 : 0);
  const left = view.turnsLeft != null && turns > view.turns ? { turnsLeft: view.turnsLeft - 1 } : {};
  const announcements = TOLD.includes(kind) ? [...view.announcements, { turn: turns, ...event }] : view.announcements;
  const next = { ...view, turns, ...left, announcements };
  const moved = (square) => ({ ...next, monster: square ?? view.trail?.[view.gone], gone: (view.gone ?? 0) + 1, feints: false });
  switch (kind) {
    case "monsterHid":
      return moved(what.square);
    case "monsterMoved":
      return moved(what.to);
    case "huntressCamped":
      return { ...next, huntress: what.square };
    case "huntressMoved":
      return { ...next, huntress: what.to };
    case "sideAnnounced":
      return { ...next, side: what.side };
    case "monsterSighted":
      return what.cause === "FEINT" ? { ...next, feintLeft: false, feints: true } : next;
    case "bellPlaced":
      return { ...next, bell: what.square, tokens: { ...tokens, bell: false } };
    case "bellRang":
      return { ...next, bell: undefined };
    case "hamPlaced":
      return { ...next, ham: what.square, tokens: { ...tokens, ham: false } };
    case "hamDistance":
      return { ...next, ham: undefined };
    case "arrowShot":
      return { ...next, tokens: { ...tokens, arrows: tokens.arrows - 1 } };
    case "squareLit":
      return { ...next, litSquares: [...view.litSquares, what.square] };
    case "dawnNear":
      return { ...next, turnsLeft: what.turnsLeft };
  }
  return next;
}

/** How it ended, a step at a time; there are no points. @param {import("../game.js").Table} table */
export function scoring(table) {
  const { view } = table;
  if (!view.monster || !view.huntress) return [];
  const last = view.announcements.at(-1);
  const [kind, blow] = last ? Object.entries(last).find(([key]) => key !== "turn") : ["", {}];
  const struck = Boolean(blow.hit);
  const monsterWon = struck && kind === "monsterAttacked";
  const where = `The Huntress was on lit ${view.huntress}, the Monster on dark ${view.monster}, from where it faces lit ${FACES[view.monster]}.`;
  const end = struck
    ? monsterWon
      ? `The Monster attacked lit ${blow.square} in turn ${last.turn}, and the Huntress was there. The Monster wins.`
      : `${heard(last)[1]} The Monster was there in turn ${last.turn}: the Huntress wins.`
    : view.turns >= LONGEST_NIGHT
      ? `After ${LONGEST_NIGHT} turns it dawned, and nobody had been struck: a draw.`
      : "Dawn came after the last token, and nobody had been struck: a draw.";
  const told = (kinds) => view.announcements.filter((each) => kinds.some((name) => each[name]));
  const list = (items) =>
    items.length
      ? h(
          "ul",
          { class: "told" },
          items.map((each) => h("li", {}, h("b", {}, each.turn ? `Turn ${each.turn}` : "Start"), ` ${heard(each)[1]}`)),
        )
      : "Nothing.";
  const path = view.trail?.slice(0, view.gone);
  return [
    { title: struck ? "The last blow" : "Dawn", lines: [end, where] },
    {
      title: "What the Monster had to tell",
      lines: [list(told(["sideAnnounced", "monsterSighted", "bellRang", "hamDistance", "monsterAttacked"]))],
    },
    { title: "What the Huntress tried", lines: [list(told(["swordSwung", "arrowShot", "bellPlaced", "hamPlaced"]))] },
    ...(path?.length ? [{ title: "The Monster’s whole way", lines: [`From dark ${path.join(" → ")}.`] }] : []),
  ];
}
