/**
 * Night Clan: Locations with their spaces, the hand, and the Night Watch's choice of a card to move. See ../game.js for what a game module is;
 * this one is the example to follow.
 */

import { button, emblem, h, icon, listed, plural, svg } from "../dom.js";

const KINDS = {
  TROLL: {
    name: "Troll",
    points: -2,
    icon: "M4 3c0 4 1 6 3 7 1-1 3-2 5-2s4 1 5 2c2-1 3-3 3-7-2 1-3 3-4 4-1-1-2-1-4-1s-3 0-4 1C7 6 6 4 4 3zm3 8c-1 2-1 4 0 6s3 4 5 4 4-2 5-4 1-4 0-6c-1 0-3 1-3 3h-1l-1-1-1 1h-1c0-2-2-3-3-3zm2 7h1.500v2zm4.5 0H15l-1.5 2z",
  },
  MISTLETOE: {
    name: "Mistletoe",
    points: 1,
    icon: "M11 11C5 12 2 8 2 3c5 0 9 2 9 8zm2 0c6 1 9-3 9-8-5 0-9 2-9 8zm-1 1a2.6 2.6 0 1 0 .01 0zm-4 4a2.6 2.6 0 1 0 .01 0zm8 0a2.6 2.6 0 1 0 .01 0z",
  },
  RICHES: { name: "Riches", points: 2, icon: "M12 2 19 8 12 22 5 8zM2 17l4 2-2 3-3-3zm20 0-4 2 2 3 3-3z" },
  DAUGHTER: {
    name: "Daughter",
    points: 1,
    icon: "M12 2a5 5 0 0 1 5 5c0 2 0 3 1 4h-3a4 4 0 0 1-6 0H6c1-1 1-2 1-4a5 5 0 0 1 5-5zm-3 11h6l4 9H5z",
  },
  NIGHT_WATCH: {
    name: "Night Watch",
    points: -1,
    icon: "M9 4a3 3 0 0 1 6 0h-2a1 1 0 0 0-2 0zM7 5h10l1 3H6zm0 4h10v9H7zm4 1c-2 2-2.5 3-2.5 4.500a3.5 3 0 0 0 7 0C15.5 12 13 12 11 10zM6 19h12v3H6z",
  },
};

// Name, and a skyline of 64 by 24.
const LOCATIONS = {
  LAMP_SHOP: ["Lamp Shop", "M4 24V10l6-6 6 6v14zm16 0V14h16v10zm20 0V6h3c0-3 6-3 6 0h-4v18zm5-16h6l-1 7h-4z"],
  CHURCH: ["Church", "M8 24V13l8-6 8 6v11zm16 0V9l4-8 4 8v15zM27 0h2v2h2v1h-2v3h-2V3h-2V2h2zm7 24V16h18v8z"],
  LIBRARY: ["Library", "M6 24v-3h52v3zM8 10 32 2l24 8v2H8zm3 3h4v7h-4zm10 0h4v7h-4zm9 0h4v7h-4zm9 0h4v7h-4zm10 0h4v7h-4z"],
  OLD_CASTLE: ["Old Castle", "M4 24V6h3v2h3V6h3v2h3V6h3v8h4v-2h4v2h4v-2h4v2h4v-2h3v2h3V3h3v2h3V3h3v2h3V3h3v21H36v-4a4 4 0 0 0-8 0v4z"],
  TOWER: ["Tower", "M24 24 26 8h-3V2h4v2h3V2h4v2h3V2h4v6h-3l2 16zM8 24v-6h12v6zm36 0v-8h12v8z"],
  PALACE: ["Palace", "M4 24V12c0-4 3-5 4-8 1 3 4 4 4 8v4h10v-4c0-6 8-6 10-11 2 5 10 5 10 11v4h10v-4c0-4 3-5 4-8 1 3 4 4 4 8v12z"],
  BAR: ["Bar", "M8 24V10L24 4l16 6v14zm36-14h10v3h3v6h-3v5H44zm10 5v2h1v-2z"],
  BLACK_FOREST: ["Black Forest", "M2 24 9 6l7 18zm10 0 9-22 9 22zm14 0 8-17 8 17zm12 0 9-21 9 21zm13 0 6-14 5 14z"],
};

const EFFECTS = {
  NO_TROLL: "No Troll came: Mistletoe counts nothing, all else scores.",
  SPOILED: "More Trolls than Mistletoe: nothing here scores.",
  NEGATED: "As much Mistletoe as Trolls, or more: everything scores.",
};

const place = (location) => LOCATIONS[location][0];
const signed = (points) => (points > 0 ? `+${points}` : `${points}`.replace("-", "−"));

/** What is seen of a card on the table: its face, or its back with whose it is. `known` is a kind that only the record tells. */
function face(kind, owner, known) {
  const shown = KINDS[kind ?? known];
  return [
    shown
      ? icon(shown.icon, "figure")
      : svg(
          "svg",
          { class: "icon figure back", viewBox: "0 0 24 24", "aria-hidden": "true" },
          svg("path", { d: "M16 3a9.5 9.5 0 1 0 5 14A8 8 0 0 1 16 3z" }),
        ),
    shown && h("span", { class: "points", "aria-hidden": "true" }, signed(shown.points)),
    owner != null && emblem(owner),
  ];
}

const named = (card, table, by) => {
  const kind = card.kind ?? table.view.known?.[card.cardId];
  const whose = card.owner === table.me ? "your" : card.owner === by ? "their own" : `${table.name(card.owner)}’s`;
  return kind ? `${whose} ${KINDS[kind].name}${card.kind ? "" : ", face down"}` : `${whose} face-down card`;
};

// What may be chosen next follows from the legal moves and what was chosen so far: {card, location, moved}.
const plays = ({ legal, ui }) =>
  legal
    .map((move) => move.play)
    .filter(
      (play) =>
        play &&
        play.card === ui.card &&
        (!ui.location || play.location === ui.location) &&
        (!ui.moved || play.relocate?.cardId === ui.moved),
    );

function choose(table, choice) {
  Object.assign(table.ui, choice);
  const left = table.ui.location || table.ui.moved ? plays(table) : [];
  if (left.length === 1) table.play({ play: left[0] });
  else table.redraw();
}

/** @param {import("../game.js").Table} table */
function board(table) {
  return h(
    "div",
    { class: "night-clan" },
    h(
      "div",
      { class: "locations", "data-count": table.view.locations.length },
      table.view.locations.map((each) => location(table, each)),
    ),
    h("div", { class: "dock" }, setUp(table), choices(table), hand(table)),
  );
}

function location(table, { location, capacity, cards }) {
  const { ui } = table;
  const name = place(location);
  const left = ui.card && table.legal.length ? plays(table) : [];
  const isTarget = !ui.location && left.some((play) => play.location === location);
  const isWhereTo = ui.moved && left.some((play) => play.relocate?.to === location);
  const open = isTarget || isWhereTo;
  const onclick = () =>
    isWhereTo ? table.play({ play: left.find((play) => play.relocate.to === location) }) : choose(table, { location });
  const said = isWhereTo ? `Move it to ${name}` : `Play ${ui.card && KINDS[ui.card].name} at ${name}`;
  const score = table.view.scoring.find((each) => each.location === location);
  const movable = new Set(ui.location && !ui.moved ? left.map((play) => play.relocate?.cardId) : []);
  return h(
    "section",
    {
      class: `location ${open ? "playable" : ""} ${ui.location === location ? "chosen" : ""} ${score ? score.effect.toLowerCase() : ""}`,
      "aria-label": `${name}, ${cards.length} of ${capacity} spaces taken`,
    },
    svg(
      "svg",
      { class: "skyline", viewBox: "0 0 64 24", preserveAspectRatio: "xMaxYMax meet", "aria-hidden": "true" },
      svg("path", { d: LOCATIONS[location][1] }),
    ),
    h("h2", {}, name, h("span", { class: "count" }, ` ${cards.length}/${capacity}`)),
    h(
      "ul",
      { class: "spaces" },
      Array.from({ length: capacity }, (_, index) => space(table, cards[index], movable)),
    ),
    open &&
      button(h("span", {}, isWhereTo ? "Move here" : "Play here"), onclick, {
        class: "here",
        "data-key": `here-${location}`,
        "aria-label": said,
      }),
  );
}

function space(table, card, movable) {
  if (!card) return h("li", { class: "space", "aria-hidden": "true" });
  const known = table.view.known?.[card.cardId];
  const look = {
    class: `card seat-${card.owner} ${card.faceUp ? "" : "down"} ${table.ui.moved === card.cardId ? "chosen" : ""}`,
    "data-key": card.cardId,
  };
  const label = named(card, table);
  if (movable.has(card.cardId))
    return h(
      "li",
      {},
      button(face(card.kind, card.owner, known), () => choose(table, { moved: card.cardId }), {
        ...look,
        class: `${look.class} playable`,
        "aria-label": `Move ${label}`,
      }),
    );
  return h("li", {}, h("div", { ...look, role: "img", "aria-label": label, title: label }, face(card.kind, card.owner, known)));
}

function setUp(table) {
  const keep = table.legal.find((move) => move.keep);
  const mulligan = table.legal.find((move) => move.mulligan);
  if (!keep) return null;
  return h(
    "div",
    { class: "choices" },
    button("Keep this hand", () => table.play(keep), { class: "primary", "data-key": "keep" }),
    mulligan && button("Show it and draw anew", () => table.play(mulligan), { "data-key": "mulligan" }),
  );
}

function choices(table) {
  const { ui } = table;
  if (!ui.location) return null;
  const alone = plays(table).find((play) => !play.relocate);
  return h(
    "div",
    { class: "choices" },
    alone && button("Move no card", () => table.play({ play: alone }), { class: "primary", "data-key": "alone" }),
    button("Back", () => (Object.assign(ui, ui.moved ? { moved: undefined } : { location: undefined }), table.redraw()), {
      "data-key": "back",
    }),
  );
}

function hand(table) {
  const { view, me, ui, legal } = table;
  if (me == null || view.phase === "FINISHED" || (table.replay && !view.hand.length)) return null;
  const playable = new Set(legal.map((move) => move.play?.card));
  const count = {};
  return h(
    "section",
    { class: "hand", "aria-label": "Your hand" },
    view.hand.map((kind) => {
      count[kind] = (count[kind] ?? 0) + 1;
      const { name, points } = KINDS[kind];
      const chosen = ui.card === kind && (ui.copy ?? 1) === count[kind];
      const copy = count[kind];
      return button(
        [face(kind, me), h("span", { class: "name" }, name)],
        () => (Object.assign(ui, { card: chosen ? undefined : kind, copy, location: undefined, moved: undefined }), table.redraw()),
        {
          class: `card seat-${me} ${chosen ? "chosen" : ""} ${playable.has(kind) && !ui.card ? "playable" : ""}`,
          "data-key": `hand-${kind}-${copy}`,
          "aria-pressed": `${chosen}`,
          "aria-label": `${name}, ${points} ${Math.abs(points) === 1 ? "point" : "points"}`,
          disabled: !playable.has(kind),
        },
      );
    }),
    !view.hand.length && h("p", { class: "quiet" }, "Your hand is empty."),
  );
}

/** @param {import("../game.js").Table} table */
function prompt({ view, ui, legal, toMove, me, name }) {
  if (legal.some((move) => move.keep))
    return legal.length > 1 ? "Keep your hand, or show its two Night Watch and draw anew." : "Look at your hand, and keep it.";
  if (legal.length) {
    if (!ui.card) return `Choose a card from your hand${view.playsLeft > 1 ? ": you play two" : ""}.`;
    if (!ui.location) return `Choose a Location for your ${KINDS[ui.card].name}.`;
    if (!ui.moved) return "The Night Watch may move a card: choose one that is lit, or none.";
    return "Choose the Location that the card goes to.";
  }
  if (view.phase === "SETUP")
    return `Waiting until ${listed(toMove.filter((seat) => seat !== me).map(name))} ${toMove.length > 1 ? "keep their hands" : "keeps a hand"}.`;
  return "";
}

function event(event, table) {
  const { name } = table;
  const [kind] = Object.keys(event);
  const { seat, card, location, count, cards, cardId, from, to, points, takenBy, effect } = event[kind];
  switch (kind) {
    case "handKept":
      return `${name(seat)} kept ${seat === table.me ? "your" : "their"} hand.`;
    case "handShown":
      return `${name(seat)} showed ${listed(cards.map((each) => KINDS[each].name))}, and draws anew.`;
    case "cardsDrawn":
      return seat === table.me
        ? `You drew ${listed(cards.map((each) => KINDS[each].name))}.`
        : count > 2
          ? `${name(seat)} drew ${plural(count, "card")}.`
          : null;
    case "cardPlayed":
      return `${name(seat)} played ${card.kind ? `a ${KINDS[card.kind].name}` : "a card face down"} at ${place(location)}.`;
    case "cardRelocated": {
      const moved = table.view.locations.flatMap((each) => each.cards).find((each) => each.cardId === cardId);
      return `${name(seat)} moved ${moved ? named(moved, table, seat) : "a card"} from ${place(from)} to ${place(to)}.`;
    }
    case "locationScored":
      return `${place(location)} scored: ${scored(points, name)}. ${takenBy == null ? "Nobody takes the Location." : `${name(takenBy)} ${takenBy === table.me ? "take" : "takes"} the Location.`} ${EFFECTS[effect]}`;
  }
  return null;
}

const scored = (points, name) => points.map((each, seat) => `${name(seat)} ${signed(each)}`).join(", ");

function first(match, record) {
  const laid = (record?.moves ?? []).flatMap(({ move }) => (move?.play ? [move.play.card] : []));
  const known = Object.fromEntries(laid.map((kind, index) => [`c${index + 1}`, kind]));
  const zeros = match.seats.map(() => 0);
  return {
    ...match.view,
    phase: "SETUP",
    locations: match.view.locations.map((each) => ({ ...each, cards: [] })),
    hand: [],
    handSizes: zeros,
    deckSizes: zeros.map(() => 13),
    playsLeft: 0,
    scoring: [],
    scores: [],
    // A replay comes to them at the end.
    final: record?.scores,
    known,
  };
}

const add = (numbers, seat, more) => numbers.map((number, index) => (index === seat ? number + more : number));

function without(hand, kind) {
  const index = hand.indexOf(kind);
  return hand.filter((_, each) => each !== index);
}

function apply(view, event, me) {
  const [kind] = Object.keys(event);
  const { seat, count, cards, card, cardId, location, to } = event[kind];
  const moved = view.locations.flatMap((each) => each.cards).find((each) => each.cardId === cardId);
  const laid = (where, one) =>
    view.locations.map((each) => ({
      ...each,
      cards: [...each.cards.filter((other) => other.cardId !== one.cardId), ...(each.location === where ? [one] : [])],
    }));
  switch (kind) {
    case "matchFinished":
      return { ...view, scores: view.final ?? view.scores };
    case "handShown":
      return {
        ...view,
        hand: seat === me ? [] : view.hand,
        handSizes: add(view.handSizes, seat, -cards.length),
        deckSizes: add(view.deckSizes, seat, cards.length),
      };
    case "cardsDrawn":
      return {
        ...view,
        hand: [...view.hand, ...cards],
        handSizes: add(view.handSizes, seat, count),
        deckSizes: add(view.deckSizes, seat, -count),
      };
    case "cardPlayed":
      return {
        ...view,
        phase: "PLAY",
        locations: laid(location, card),
        hand: seat === me ? without(view.hand, card.kind ?? played(view, card)) : view.hand,
        handSizes: add(view.handSizes, seat, -1),
      };
    case "cardRelocated":
      return moved ? { ...view, locations: laid(to, moved) } : view;
    case "locationScored":
      return {
        ...view,
        phase: "FINISHED",
        scoring: [...view.scoring, event[kind]],
        locations: view.locations.map((each) => (each.location === location ? { ...each, cards } : each)),
      };
  }
  return view;
}

/** The kind of a card of mine that is laid face down: the event does not say. In a replay the record does; else the server tells at once. */
const played = (view, card) => view.known?.[card.cardId];

/** @param {import("../game.js").Table} table */
function scoring({ view, name, me }) {
  return view.scoring.map(({ location, cards, takenBy, effect, points }) => ({
    title: place(location),
    lines: [
      h(
        "div",
        { class: "night-clan scored" },
        cards.map((card) =>
          h(
            "span",
            {
              class: `card seat-${card.owner} ${loses(card, effect) ? "lost" : ""}`,
              role: "img",
              "aria-label": `${name(card.owner)}: ${KINDS[card.kind].name}`,
            },
            face(card.kind, card.owner),
          ),
        ),
      ),
      takenBy == null
        ? "Most cards: a tie. Nobody takes the Location."
        : `Most cards: ${name(takenBy)} ${takenBy === me ? "take" : "takes"} the Location.`,
      EFFECTS[effect],
    ],
    points,
  }));
}

const loses = (card, effect) => effect === "SPOILED" || (effect === "NO_TROLL" && card.kind === "MISTLETOE");

function art() {
  return svg(
    "svg",
    { viewBox: "0 0 160 90", "aria-hidden": "true" },
    svg("circle", { cx: 122, cy: 26, r: 15, class: "moon" }),
    svg("path", {
      d: "M0 90V60h14V48l10-9 10 9v12h14V40l5-12 5 12v20h16V46h6v4h6v-4h6v4h6v-4h6v18h12V52l12-8 12 8v12h20v26z",
      class: "far",
    }),
    svg("path", { d: "M0 90V74h30v-8l8-6 8 6v10h24v-6h30v8h16l8-14 8 14h28v12z", class: "near" }),
    svg("path", { d: "M36 70h4v5h-4zm70 6h4v4h-4zm20 2h4v4h-4z", class: "lit" }),
  );
}

/** @type {import("../game.js").Game} */
export default {
  id: "night_clan",
  title: "Night Clan",
  tagline: "Sneak your clan into town after dark, and remember which of the face-down cards is the Troll.",
  seats: [2, 4],
  options: [
    {
      name: "variant",
      label: "Variant",
      kind: "choice",
      value: "NIGHT",
      help: "At night Troll, Mistletoe and Riches lie face down; by day all cards lie face up.",
      choices: [
        ["NIGHT", "Night"],
        ["DAY", "Day"],
      ],
    },
  ],
  rules: [
    {
      title: "The idea",
      items: [
        [
          "NC-01",
          "Everybody has the same thirteen cards: seven Daughters (+1), two Riches (+2), one Mistletoe (+1), two Night Watch (−1) and one Troll (−2).",
        ],
        [
          "NC-02",
          "Locations have 5 to 8 spaces. There are just enough for all cards: four Locations with two players, six with three, eight with four.",
        ],
        ["NC-18", "The most points win. Among equals, whoever holds the larger Locations."],
      ],
    },
    {
      title: "Before you start",
      items: [["NC-04", "You hold three cards. With both Night Watch among them you may show the hand, and draw anew."]],
    },
    {
      title: "Your turn",
      items: [
        ["NC-06", "Play two cards, one after the other, to any Locations with free space. Then you draw up to three again."],
        ["NC-07", "When your deck is out, you play what is left: one card in the last turn."],
        ["NC-09", "Troll, Mistletoe and Riches go face down: nobody can look again, not even you. Daughter and Night Watch go face up."],
        [
          "NC-10",
          "A Night Watch may move one card when it is played. It pulls one of your own here from elsewhere, or pushes somebody else’s card from here to another Location. A card moved face down stays face down.",
        ],
        ["NC-08", "A Location that is full takes nothing, not even a Night Watch that would push a card away."],
      ],
    },
    {
      title: "Scoring",
      items: [
        ["NC-12", "When all spaces are taken, all cards are turned up. Locations score one by one, the smallest first."],
        ["NC-13", "Whoever has most cards there takes the Location. With a tie, nobody does."],
        ["NC-14", "More Trolls than Mistletoe: nothing there scores."],
        ["NC-15", "A Troll, and as much Mistletoe or more: everything scores, Mistletoe and Troll too."],
        ["NC-16", "No Troll: Mistletoe counts nothing, all else scores."],
      ],
    },
  ],
  art,
  board,
  prompt,
  note: ({ view }, seat) =>
    view.scores.length ? `${plural(view.scores[seat], "point")}` : `${view.handSizes[seat]} in hand, ${view.deckSizes[seat]} to draw`,
  event,
  apply,
  first,
  scoring,
};
