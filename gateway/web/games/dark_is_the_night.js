/**
 * Dark Is the Night: the ring of dark squares round the lit ones and the campfire, what each of the two can do, and what everybody was told
 * of the Monster. Where it may be by now is the Huntress's to work out: the page marks what was said, and no more.
 */

import { button, h, listed, plural, svg } from "../dom.js";
import {
  around,
  apply,
  draw,
  event,
  FACES,
  first,
  heard,
  HUNTRESS,
  lower,
  MONSTER,
  scoring,
  SIDES,
  WAYS,
} from "./dark_is_the_night_tale.js";

const NOTES = 8;
const OLD = 4;

// Row and column of each square, from its number on (DN-01).
const DARK = ["", "1/2", "1/3", "1/4", "2/5", "3/5", "4/5", "5/4", "5/3", "5/2", "4/1", "3/1", "2/1"];
const LIT = ["", "2/2", "2/3", "2/4", "3/4", "4/4", "4/3", "4/2", "3/2"];

/** What the Huntress can do after her move, by the name of it in a `Hunt`. */
const TOOLS = {
  sword: { label: "Strike", ask: "Choose the dark square to strike at." },
  arrow: { label: "Arrow", ask: "Choose where the arrow goes. Through the fire it burns: it lights up the square, and hurts nobody." },
  bell: { label: "Bell", ask: "Choose the dark square for the bell." },
  ham: { label: "Ham", ask: "Choose the dark square for the ham." },
};

// Where an arrow from each lit square comes to, clockwise from the north; and whether through the fire (DN-08).
const FLIGHTS = {
  NORTH: [0, 1, 2, 3, 3, 3, -2, 1, 1],
  EAST: [0, 4, 4, 4, 5, 6, 6, 6, -5],
  SOUTH: [0, 9, -8, 7, 7, 7, 8, 9, 9],
  WEST: [0, 12, 12, 12, -11, 10, 10, 10, 11],
};

/** What a click on a square does now: by ring and number, {label, icon, move or choose}. */
function targets({ legal, ui, view, me }) {
  const found = { lit: new Map(), dark: new Map() };
  const put = (ring, square, label, name, act) => found[ring].set(square, { label, name, ...act });
  const hunts = legal.flatMap((move) => (move.hunt ? [move] : []));
  for (const move of legal) {
    if (move.lair) put("dark", move.lair.square, "Hide here", "monster", { move });
    if (move.camp) put("lit", move.camp.square, "Camp here", "huntress", { move });
    if (move.lured) put("dark", around(view.monster, WAYS[move.lured.direction]), `Go ${lower(move.lured.direction)}`, "step", { move });
    if (move.prowl && ui.mode !== "feint") {
      const to = around(view.monster, WAYS[move.prowl.direction]);
      const both = legal.filter((each) => each.prowl?.direction === move.prowl.direction);
      if (!ui.to) put("dark", to, `Go ${lower(move.prowl.direction)}`, "step", both.length > 1 ? { choose: { to } } : { move });
    }
    if (move.feint && ui.mode === "feint") {
      const { steps } = move.feint;
      put("dark", around(view.monster, steps), steps ? `Feint, ${plural(Math.abs(steps), "square")}` : "Feint, and stay", "step", { move });
    }
  }
  for (const move of hunts) {
    const { to } = move.hunt;
    if (!ui.to) {
      const alone = hunts.filter((each) => each.hunt.to === to).length === 1;
      put("lit", to, "Go here", "step", alone ? { move } : { choose: { to } });
    } else if (to === ui.to && move.hunt[ui.tool]) {
      const action = move.hunt[ui.tool];
      const flight = action.direction && FLIGHTS[action.direction][to];
      const burns = flight < 0 ? ", burning" : "";
      put(
        "dark",
        action.square ?? Math.abs(flight),
        `${TOOLS[ui.tool].label} ${action.direction ? lower(action.direction) + burns : "here"}`,
        burns ? "fire" : ui.tool,
        { move },
      );
    }
  }
  return me == null ? { lit: new Map(), dark: new Map() } : found;
}

/** What was said last of each square, and when: by ring and number, {name, turn, text, figure}. */
function marks({ announcements }) {
  const found = { lit: new Map(), dark: new Map() };
  for (const { turn, ...said } of announcements) {
    const [kind] = Object.keys(said);
    const { square, side, distance, hit } = said[kind];
    const put = (name, text, figure) => found.dark.set(square, { name, turn, text, figure });
    if (kind === "sideAnnounced")
      for (const each of SIDES[side]) found.dark.set(each, { name: "eye", turn, text: "its side at the start", figure: "?" });
    if (kind === "monsterSighted") put("eye", "the Monster was here");
    if (kind === "bellRang") put("bell", "the bell rang");
    if (kind === "hamDistance") put("ham", `${plural(distance, "square")} from the ham`, distance);
    if (kind === "arrowShot") put("arrow", hit ? "an arrow hit" : "an arrow came here");
    if (kind === "swordSwung") put("sword", hit ? "the sword hit" : "the sword missed");
    if (kind === "monsterAttacked") found.lit.set(square, { name: "claws", turn, text: "it was attacked" });
  }
  return found;
}

/** @param {import("../game.js").Table} table */
function board(table) {
  return h("div", { class: "dark-is-the-night" }, night(table), h("div", { class: "dock" }, choices(table)), notes(table));
}

function night(table) {
  const { view } = table;
  const [can, said] = [targets(table), marks(view)];
  const ring = (name, places) => places.slice(1).map((place, index) => square(table, name, index + 1, place, can[name], said[name]));
  return h(
    "div",
    { class: "night", role: "group", "aria-label": "The clearing: dark squares 1 to 12 round lit squares 1 to 8" },
    scene(),
    h("span", { class: "campfire" }, draw("fire", "back"), draw("fire", "front")),
    ring("dark", DARK),
    ring("lit", LIT),
  );
}

function square(table, ring, number, place, can, said) {
  const { view, ui } = table;
  const [row, column] = place.split("/");
  const isDark = ring === "dark";
  const burning = isDark && view.litSquares.includes(number);
  const here = isDark ? (view.monster === number ? "monster" : "") : view.huntress === number ? "huntress" : "";
  const target = can.get(number);
  const mark = said.get(number);
  const lies = isDark && [view.bell === number && "bell", view.ham === number && "ham"].find(Boolean);
  const words = [
    `${isDark ? "Dark" : "Lit"} square ${number}`,
    here &&
      (here === "monster" ? (table.me === MONSTER || !table.replay ? "the Monster" : "the Monster, as the record tells") : "the Huntress"),
    isDark && `faces lit square ${FACES[number]}`,
    burning && "lit up",
    lies && `the ${lies} lies here`,
    mark && `turn ${mark.turn}: ${mark.text}`,
  ].filter(Boolean);
  const props = {
    class: ["square", ring, burning && "burning", target && "playable", ui.to === number && isDark === (table.me === MONSTER) && "chosen"]
      .filter(Boolean)
      .join(" "),
    vars: { "--row": row, "--column": column },
    "data-key": `${ring}-${number}`,
    "aria-label": `${target ? `${target.label}: ` : ""}${words.join(", ")}`,
  };
  const inside = [
    h("span", { class: "number", "aria-hidden": "true" }, number),
    mark &&
      !here &&
      h(
        "span",
        { class: `mark ${view.turns - mark.turn > OLD ? "old" : ""}`, "aria-hidden": "true" },
        draw(mark.name),
        h("span", {}, mark.figure ?? "", h("small", {}, mark.turn ? ` t${mark.turn}` : "")),
      ),
    burning && draw("fire", "flame"),
    lies && draw(lies, "lies"),
    here &&
      h("span", { class: `figure ${here} ${here === "monster" && table.me !== MONSTER ? "told" : ""}`, "data-key": here }, draw(here)),
    target && !here && draw(target.name, "hint"),
  ];
  if (!target) return h("div", { ...props, role: "img" }, inside);
  return h(
    "button",
    {
      type: "button",
      ...props,
      onclick: () => (target.move ? table.play(target.move) : (Object.assign(table.ui, target.choose), table.redraw())),
    },
    inside,
  );
}

const scene = () =>
  svg(
    "svg",
    { class: "scene", viewBox: "0 0 100 100", "aria-hidden": "true" },
    [
      [2, 2],
      [84, 2],
      [2, 85],
      [84, 85],
    ].map(([x, y]) =>
      svg("path", {
        transform: `translate(${x} ${y})`,
        d: "M3 12h-3l3-4H1l3-4 3 4H5l3 4H5v2H3zm7-2H8l2.5-3.5H9L11 3l2 3.5h-1.5L14 10h-2v2h-2z",
      }),
    ),
  );

/** What everybody was told, the newest first; and what is left to use. */
function notes(table) {
  const { view } = table;
  const { arrows, bell, ham } = view.tokens;
  const kit = (name, left, words) => h("li", { class: left ? "" : "used", title: words }, draw(name), h("span", {}, words));
  const told = view.announcements.toReversed().slice(0, NOTES);
  return h(
    "section",
    { class: "notes", "aria-label": "What everybody knows" },
    h(
      "ul",
      { class: "kit" },
      kit("arrow", arrows, plural(arrows, "arrow")),
      kit("bell", bell, bell ? "bell" : "no bell"),
      kit("ham", ham, ham ? "ham" : "no ham"),
      kit("monster", view.feintLeft, view.feintLeft ? "feint" : "no feint"),
      view.turnsLeft != null && h("li", { class: "dawn" }, `${plural(view.turnsLeft, "turn")} to dawn`),
    ),
    h(
      "ol",
      {},
      told.map((each) => {
        const [name, words] = heard(each);
        return h(
          "li",
          { class: view.turns - each.turn > OLD ? "old" : "", "data-key": `note-${JSON.stringify(each)}` },
          draw(name),
          h("span", {}, words),
          h("small", {}, each.turn ? `turn ${each.turn}` : "start"),
        );
      }),
    ),
    !told.length && h("p", { class: "quiet" }, "Whatever the Monster must tell is noted here."),
  );
}

function choices(table) {
  const { legal, ui } = table;
  const set = (choice) => () => (Object.assign(ui, choice), table.redraw());
  const of = (name, label, act, props) => button([draw(name), label], act, { "data-key": `do-${label}`, ...props });
  const back = button("Back", set({ to: undefined, tool: undefined, mode: undefined }), { class: "subtle", "data-key": "back" });
  if (legal.some((move) => move.hunt)) {
    if (!ui.to) return null;
    const from = legal.map((move) => move.hunt).filter((hunt) => hunt?.to === ui.to);
    const quiet = from.find((hunt) => !Object.keys(TOOLS).some((tool) => hunt[tool]));
    return h(
      "div",
      { class: "choices" },
      quiet && of("step", "Only move", () => table.play({ hunt: quiet })),
      Object.entries(TOOLS)
        .filter(([tool]) => from.some((hunt) => hunt[tool]))
        .map(([tool, { label }]) =>
          of(tool, label, set({ tool }), { "aria-pressed": `${ui.tool === tool}`, class: ui.tool === tool ? "chosen" : "" }),
        ),
      back,
    );
  }
  const prowls = legal.filter((move) => move.prowl && around(table.view.monster, WAYS[move.prowl.direction]) === ui.to);
  if (ui.to)
    return h(
      "div",
      { class: "choices" },
      prowls.map((move) =>
        move.prowl.attack
          ? of("claws", `Attack lit ${FACES[ui.to]}`, () => table.play(move), { class: "primary" })
          : of("step", "Only move", () => table.play(move)),
      ),
      back,
    );
  if (ui.mode === "feint") return h("div", { class: "choices" }, back);
  return legal.some((move) => move.feint) ? h("div", { class: "choices" }, of("eye", "Feint…", set({ mode: "feint" }))) : null;
}

/** @param {import("../game.js").Table} table */
function prompt({ legal, ui, view, me, toMove, name }) {
  const has = (kind) => legal.some((move) => move[kind]);
  if (has("lair")) return "Hide on any dark square. Only its side will be told.";
  if (has("camp")) return "Camp on any lit square.";
  if (has("lured")) return "The ham is as far both ways: choose yours.";
  if (has("hunt")) {
    if (!ui.to) return "Go to the lit square before or after yours.";
    return ui.tool ? TOOLS[ui.tool].ask : "You may do one thing there.";
  }
  if (has("prowl")) {
    if (ui.to) return `From dark ${ui.to} you face lit ${FACES[ui.to]}.`;
    if (ui.mode === "feint") return `You tell that you are on dark ${view.monster}, then go up to two squares unseen, or stay.`;
    return `Go one square round the dark${has("feint") ? ", or feint" : ""}.`;
  }
  if (!toMove.length || toMove.includes(me)) return "";
  if (view.ham) return `${name(MONSTER)} picks a way to the ham.`;
  if (view.huntress) return "";
  return view.monster || toMove[0] === HUNTRESS ? `${name(toMove[0])} camps.` : `${name(toMove[0])} hides.`;
}

function note({ view }, seat) {
  if (seat === MONSTER) return view.feintLeft ? "feint left" : "feint used";
  const { arrows, bell, ham } = view.tokens;
  const left = [arrows && plural(arrows, "arrow"), bell && "bell", ham && "ham"];
  return left.some(Boolean) ? listed(left.filter(Boolean)) : "sword";
}

function art() {
  return svg(
    "svg",
    { viewBox: "0 0 160 90", "aria-hidden": "true" },
    svg("circle", { cx: 30, cy: 20, r: 11, class: "moon" }),
    svg("path", { d: "M0 90V50l9-20 9 20 8-26 10 30 9-20 10 26h50l9-26 9 20 9-32 10 28 8-16 10 26v30z", class: "far" }),
    svg("path", { d: "M0 90V76c26-8 52-10 80-10s54 2 80 10v14z", class: "near" }),
    svg("path", {
      d: "M80 34c2 9 13 13 13 26a13 13 0 0 1-26 0c0-5 2-9 4.6-11.6.4 4.6 2 6.8 4.4 6.8C78 49 75 42 80 34zM64 74l30-5 1 3-30 5zm2-5 30 5-1 3-30-5z",
      class: "lit",
    }),
    svg("path", { d: "M122 50l4-1.5a3.5 3.5 0 0 1-4 1.5zm12 0-4-1.5a3.5 3.5 0 0 0 4 1.5z", class: "lit" }),
  );
}

/** @type {import("../game.js").Game} */
export default {
  id: "dark_is_the_night",
  title: "Dark Is the Night",
  tagline:
    "Something prowls round the campfire, unseen. The Huntress listens, and shoots; the Monster waits until she stands in front of it.",
  seats: [2, 2],
  roles: ["Huntress", "Monster"],
  options: [
    {
      name: "turnsToDawn",
      label: "Turns to dawn",
      kind: "number",
      value: 5,
      min: 1,
      max: 50,
      step: 1,
      help: "How many turns, both players’ counted, are played after the Huntress’s last token.",
    },
  ],
  rules: [
    {
      title: "The idea",
      items: [
        ["DN-01", "A campfire, eight lit squares round it, and twelve dark ones round those, numbered clockwise from the north-west."],
        [
          "DN-02",
          "The Monster hides on a dark square, the Huntress camps on a lit one. Only the Monster’s side is told. Whoever strikes the other wins.",
        ],
        ["DN-03", "In your turn you move exactly one square, and then you may do one thing. In your first turn you only move."],
      ],
    },
    {
      title: "The Huntress",
      items: [
        ["DN-06", "The sword strikes a dark square beside hers. It is never used up."],
        [
          "DN-08",
          "Two arrows fly north, east, south or west to the dark. Through the fire an arrow burns: it hurts nobody, and lights up its square for good.",
        ],
        ["DN-09", "Whenever the Monster steps onto a lit-up square, it says so."],
        ["DN-10", "The bell, on any dark square, rings once: when the Monster steps there, or at once if it is there."],
        ["DN-11", "The ham, on any dark square, draws the Monster one square nearer. Then it says how many squares away it is."],
      ],
    },
    {
      title: "The Monster",
      items: [
        ["DN-04", "It goes round the dark, one square a turn; the corners do not stop it."],
        ["DN-05", "It can attack the one lit square that it faces after its move. An attack in vain is told as well."],
        ["DN-12", "Once, in place of its turn, it feints: it says where it is, then goes up to two squares unseen, or stays."],
      ],
    },
    {
      title: "The end",
      items: [
        [
          "DN-14",
          "After the Huntress’s last token a few more turns are played, five unless agreed otherwise. Then it is dawn, and a draw.",
        ],
        ["DN-15", "After 200 turns it is dawn in any case."],
        ["DN-16", "Nobody but the Monster is told where it is. Marks on the board show what was said, and in which turn."],
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
