/** Clans and Glory: the line of meeting fields with its residents and stacks of shields. */

import { button, emblem, h, icon, listed, plural, svg } from "../dom.js";

// The clans by colour, each with its symbol: nobody needs to tell the colours apart (CG-01).
const CLANS = {
  RED: {
    name: "Stag",
    icon: "M12 10c-3 0-5-1-6-4V2H4v3L2 4 1 6l4 3c1 2 3 3 4 3l-1 2 2 8h4l2-8-1-2c1 0 3-1 4-3l4-3-1-2-2 1V2h-2v4c-1 3-3 4-6 4z",
  },
  ORANGE: { name: "Fox", icon: "M2 3l6 4h8l6-4-1 10-6 5-3 4-3-4-6-5zm5 8 3 3v-2zm10 0-3 1v2z" },
  YELLOW: { name: "Wheatsheaf", icon: "M11 23v-7l-5-4 1-2 4 3v-2L6 7l1-3 4 4V3l1-2 1 2v5l4-4 1 3-5 4v2l4-3 1 2-5 4v7zM8 17h8v2H8z" },
  GREEN: {
    name: "Thistle",
    icon: "M7 2l2 4 3-5 3 5 2-4v6H7zm0 7h10l1 3a6 5 0 0 1-5 5v2l5-3 2 1-3 4-4 1v2h-2v-2l-4-1-3-4 2-1 5 3v-2a6 5 0 0 1-5-5z",
  },
  BLUE: { name: "Salmon", icon: "M1 12c4-6 11-7 15-2l6-5-2 7 2 7-6-5c-4 5-11 4-15-2zm5-2a1.3 1.3 0 1 0 .01 0z" },
  PURPLE: {
    name: "Heather",
    icon: "M11 23V10h2v13zm1-22a2.5 2.5 0 1 0 .01 0zM7.5 4.5a2.5 2.5 0 1 0 .01 0zm9 0a2.5 2.5 0 1 0 .01 0zM6 10a2.5 2.5 0 1 0 .01 0zm12 0a2.5 2.5 0 1 0 .01 0zM7 15.5a2.5 2.5 0 1 0 .01 0zm10 0a2.5 2.5 0 1 0 .01 0z",
  },
  GREY: { name: "Wolf", icon: "M3 23c0-6 2-9 5-11L7 8l3 1 6-7 1 4 4-1-3 4-1 3c3 3 3 7 1 11h-3v-4l-3-2-3 2v4z" },
};
const SHIELD = "M3 2h18v9c0 6-4 9-9 12-5-3-9-6-9-12z";
const FLAME = "M12 1c1 4 6 6 6 12a6 6 0 0 1-12 0c0-3 2-4 2-7 2 1 3 3 3 4 1-3 0-6 1-9zM3 20l18 3v-2L3 18zm18-2L3 21v2l18-3z";

const same = (one, other) => one.color === other.color && one.strength === other.strength;
const called = ({ color, strength }) => `${CLANS[color].name} ${strength}`;
const fieldName = (field) => `field ${field + 1}`;
const slotName = (slot) => `${["left", "middle", "right"][slot % 3]} space ${slot < 3 ? "above" : "below"}`;

const face = ({ color, strength }) => [
  h("span", { class: "strength", "aria-hidden": "true" }, strength),
  icon(CLANS[color].icon, "symbol"),
];

// What may be chosen next follows from the legal moves and what was chosen so far: {card, at: [field, slot]}.
const places = ({ legal, ui }) =>
  legal
    .map((move) => move.place)
    .filter((place) => ui.card && same(place.card, ui.card) && (!ui.at || (place.field === ui.at[0] && place.slot === ui.at[1])));

/** @param {import("../game.js").Table} table */
function board(table) {
  const { view } = table;
  return h(
    "div",
    { class: "clans" },
    h(
      "div",
      { class: "line", "data-fields": view.fields.length },
      view.fields.map((field, index) => fieldOf(table, field, index)),
    ),
    h("div", { class: "dock" }, choices(table), hand(table)),
  );
}

function fieldOf(table, { slots, shields, campfire }, index) {
  const open = new Set(
    table.ui.at
      ? []
      : places(table)
          .filter((place) => place.field === index)
          .map((place) => place.slot),
  );
  const last = index > 0 && campfire;
  return h(
    "section",
    {
      class: `field ${campfire ? (last ? "fire last" : "fire first") : ""}`,
      "aria-label": `${fieldName(index)}${campfire ? ", with the campfire" : ""}`,
    },
    h(
      "ol",
      { class: "slots" },
      slots.map((slot, at) => h("li", {}, space(table, slot, index, at, open.has(at)))),
    ),
    stack(table, shields),
    campfire && icon(FLAME, "campfire"),
  );
}

function space(table, { resident, faceDown }, field, slot, open) {
  const key = `${field}-${slot}`;
  const chosen = table.ui.at?.join("-") === key;
  if (open) {
    const choose = () => {
      table.ui.at = [field, slot];
      const left = places(table);
      if (left.length === 1) table.play({ place: left[0] });
      else table.redraw();
    };
    return button("", choose, {
      class: "space playable",
      "data-key": `s${key}`,
      "aria-label": `Play ${called(table.ui.card)} on ${fieldName(field)}, ${slotName(slot)}`,
    });
  }
  const known = table.view.known?.[key];
  if (resident)
    return h(
      "div",
      { class: `card clan-${resident.color}`, role: "img", "aria-label": called(resident), title: called(resident), "data-key": key },
      face(resident),
    );
  if (faceDown)
    return h(
      "div",
      { class: "card down", role: "img", "aria-label": known ? `${called(known)}, face down` : "a face-down card", "data-key": key },
      known ? face(known) : null,
    );
  if (chosen)
    return h("div", { class: "space chosen" }, h("div", { class: `card ghost clan-${table.ui.card.color}` }, face(table.ui.card)));
  return h("div", { class: "space", "aria-hidden": "true" });
}

/** The shields of a field, the first placed first: in this order they take. */
function stack(table, shields) {
  const said = shields.length ? `Shields, the first placed first: ${listed(shields.map(table.name))}` : "No shields";
  return h(
    "div",
    { class: "stack", role: "img", "aria-label": said, title: said },
    shields.map((seat, index) => h("span", { class: `shield seat-${seat}` }, icon(SHIELD), emblem(seat), h("small", {}, index + 1))),
  );
}

function choices(table) {
  const { ui, view, me } = table;
  if (!ui.at) return null;
  const left = places(table);
  const shield = left.find((place) => place.shield);
  const none = left.find((place) => !place.shield);
  return h(
    "div",
    { class: "choices" },
    shield &&
      button([icon(SHIELD), `With a shield (${view.shieldsLeft[me]} left)`], () => table.play({ place: shield }), {
        class: `seat-${me} with`,
        "data-key": "shield",
      }),
    none && button("Without a shield", () => table.play({ place: none }), { class: "primary", "data-key": "none" }),
    button("Back", () => ((ui.at = undefined), table.redraw()), { "data-key": "back" }),
  );
}

function hand(table) {
  const { view, ui, legal } = table;
  if (!view.hand.length) return null;
  return h(
    "section",
    { class: "hand", "aria-label": "Your hand" },
    view.hand.map((card) => {
      const playable = legal.some(({ place }) => same(place.card, card));
      const chosen = Boolean(ui.card && same(ui.card, card));
      return button(face(card), () => (Object.assign(ui, { card: chosen ? undefined : card, at: undefined }), table.redraw()), {
        class: `card clan-${card.color} ${chosen ? "chosen" : playable && !ui.card ? "playable" : ""}`,
        "data-key": called(card),
        "aria-pressed": `${chosen}`,
        "aria-label": called(card),
        disabled: !playable,
      });
    }),
  );
}

/** @param {import("../game.js").Table} table */
function prompt({ legal, ui }) {
  if (!legal.length) return "";
  if (!ui.card)
    return legal.some(({ place }) => place.faceDown)
      ? "Nothing in your hand fits: choose any card, it goes face down."
      : "Choose a resident from your hand.";
  if (!ui.at) return `Choose a space for your ${called(ui.card)}.`;
  return "Do you put a shield on top of this field’s stack?";
}

function event(event, { name, me }) {
  const [kind] = Object.keys(event);
  const { seat, field, slot, resident, count, cards, taken, left } = event[kind];
  switch (kind) {
    case "handDealt":
      return seat === me ? `You were dealt ${plural(count, "resident")}.` : null;
    case "residentPlaced":
      if (seat == null) return null;
      return `${name(seat)} played ${event[kind].faceDown ? `a card face down${resident ? ` (${called(resident)})` : ""}` : called(resident)} on ${fieldName(field)}, ${slotName(slot)}.`;
    case "shieldPlaced":
      return `${name(seat)} put a shield on ${fieldName(field)}.`;
    case "fieldScored": {
      const takes = taken
        .filter((each) => each.residents.length)
        .map((each) => `${name(each.seat)} took ${listed(each.residents.map(called))}`);
      return `Field ${field + 1} scored: ${takes.length ? takes.join("; ") : "nobody took anything"}.${left.length ? ` ${plural(left.length, "resident")} left.` : ""}`;
    }
  }
  return null;
}

function first(match, record) {
  const hidden = (record?.moves ?? []).flatMap(({ move }) => (move?.place.faceDown ? [move.place] : []));
  return {
    fields: match.view.fields.map(({ campfire }) => ({
      campfire,
      slots: Array.from({ length: 6 }, () => ({ faceDown: false })),
      shields: [],
    })),
    hand: [],
    handSizes: match.seats.map(() => 0),
    shieldsLeft: match.seats.map(() => 5),
    removedCount: match.view.removedCount,
    scoring: [],
    scores: [],
    // A replay comes to them at the end.
    final: record?.scores,
    known: Object.fromEntries(hidden.map(({ field, slot, card }) => [`${field}-${slot}`, card])),
  };
}

const add = (numbers, seat, more) => numbers.map((number, index) => (index === seat ? number + more : number));
const at = (list, index, change) => list.map((each, other) => (other === index ? change(each) : each));

function apply(view, event, me) {
  const [kind] = Object.keys(event);
  const { seat, field, slot, resident, faceDown, count, cards } = event[kind];
  switch (kind) {
    case "matchFinished":
      return { ...view, scores: view.final ?? view.scores };
    case "handDealt":
      return { ...view, hand: seat === me ? cards : view.hand, handSizes: add(view.handSizes, seat, count) };
    case "residentPlaced": {
      const lies = faceDown ? { faceDown } : { faceDown, resident };
      return {
        ...view,
        fields: at(view.fields, field, (each) => ({ ...each, slots: at(each.slots, slot, () => lies) })),
        hand: seat != null && seat === me && resident ? view.hand.filter((card) => !same(card, resident)) : view.hand,
        handSizes: add(view.handSizes, seat, -1),
      };
    }
    case "shieldPlaced":
      return {
        ...view,
        fields: at(view.fields, field, (each) => ({ ...each, shields: [...each.shields, seat] })),
        shieldsLeft: add(view.shieldsLeft, seat, -1),
      };
    case "fieldScored":
      return { ...view, hand: [], scoring: [...view.scoring, event[kind]] };
  }
  return view;
}

const worth = (residents) => residents.reduce((sum, { strength }) => sum + strength, 0);
const shown = (residents) =>
  residents.map((resident) =>
    h("span", { class: `card clan-${resident.color}`, role: "img", "aria-label": called(resident) }, face(resident)),
  );

/** @param {import("../game.js").Table} table */
function scoring({ view, seats, name }) {
  return view.scoring.map(({ field, taken, left }) => ({
    title: `field ${field + 1}`,
    lines: [
      h(
        "ol",
        { class: "clans scored" },
        taken.map(({ seat, residents }) =>
          h(
            "li",
            { class: `seat-${seat}` },
            h("span", { class: "shield" }, icon(SHIELD), emblem(seat)),
            h("span", {}, `${name(seat)}: ${residents.length ? `all of strength ${residents[0].strength}` : "nothing is left"}`),
            shown(residents),
          ),
        ),
        left.length > 0 && h("li", {}, h("span", {}, "Nobody’s:"), shown(left)),
      ),
      !taken.length && "No shield lies here: nobody takes anything.",
    ].filter(Boolean),
    points: seats.map(({ seat }) => worth(taken.filter((each) => each.seat === seat).flatMap((each) => each.residents))),
  }));
}

function art() {
  const shield = (x, y, fill) =>
    svg("path", { d: `M${x} ${y}h22v11c0 7-5 11-11 14-6-3-11-7-11-14z`, fill, stroke: "#191736", "stroke-width": 2 });
  return svg(
    "svg",
    { viewBox: "0 0 160 90", "aria-hidden": "true" },
    svg("path", { d: "M0 90V58l26-20 22 14 34-30 30 26 22-14 26 20v36z", class: "far" }),
    svg("path", { d: "M0 90V74c40-12 120-12 160 0v16z", class: "near" }),
    svg("path", { d: "M80 34c2 9 14 13 14 27a14 14 0 0 1-28 0c0-7 5-9 5-16 4 2 6 6 6 9 3-6 1-13 3-20z", class: "lit" }),
    svg("path", { d: "M60 76l40-6v5l-40 6zm40 0-40-6v5l40 6z", fill: "#5b3b2a" }),
    shield(22, 54, "#6cc1f2"),
    shield(116, 54, "#f5a63c"),
  );
}

/** @type {import("../game.js").Game} */
export default {
  id: "clans_and_glory",
  title: "Clans and Glory",
  tagline: "Gather the clans round the campfires and stack your shields: the first on a field takes the weakest.",
  seats: [2, 4],
  options: [],
  rules: [
    {
      title: "The idea",
      items: [
        ["CG-01", "Residents have one of seven colours, each with its symbol, and a strength of 3 to 8. No two are alike."],
        ["CG-11", "Residents that you collect at the end are worth their strength. The most points win; among equals, more residents."],
      ],
    },
    {
      title: "Your turn",
      items: [
        [
          "CG-06",
          "Play a resident onto a free space. It must share its colour or its strength with a neighbour to the left or right, or with the card opposite; one such card is enough. Where none of these lies, any resident may go.",
        ],
        ["CG-04", "Neighbours count across the border of two fields. Opposite is the space of the same column in the other row."],
        ["CG-07", "If nothing in your hand fits anywhere, any card goes face down. To all around it, that space counts as empty."],
        ["CG-08", "Then you may put one of your five shields on top of the stack of that very field. It stays there."],
      ],
    },
    {
      title: "The end",
      items: [
        ["CG-09", "The last turn is that of the seat with the smallest hand. One card of everybody else’s is left over."],
        [
          "CG-10",
          "Field by field, shields take in the order in which they were placed: each takes all face-up residents of the lowest strength that are still there. What is left is nobody’s.",
        ],
      ],
    },
  ],
  art,
  board,
  prompt,
  note: ({ view }, seat) =>
    view.scores.length
      ? plural(view.scores[seat], "point")
      : `${view.handSizes[seat]} in hand, ${plural(view.shieldsLeft[seat], "shield")}`,
  event,
  apply,
  first,
  scoring,
};
