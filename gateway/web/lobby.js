/** The screens around a match: the games, a room, and looking for opponents. */

import { call, rename, session, signIn, sleep } from "./api.js";
import { button, h, listed, plural } from "./dom.js";
import { GAMES, gameOf, load } from "./game.js";
import { live } from "./live.js";
import { complain, dialog, doing, notice, rules } from "./page.js";

const NAMES = [
  ["Quiet", "Dusky", "Amber", "Misty", "Lantern", "Velvet", "Silver", "Late"],
  ["Fox", "Owl", "Heron", "Moth", "Badger", "Hare", "Wren", "Otter"],
];
const CLOCKS = [
  ["30", "30 seconds a move"],
  ["60", "1 minute a move"],
  ["300", "5 minutes a move"],
  ["86400", "A day a move"],
  ["0", "No clock"],
];
const LOOK_EVERY = 2500;
const MOST_MATCHES = 8;

const go = (hash) => (location.hash = hash);
/** Goes where a room or a ticket has led; the way back does not lead into it again. */
const move = (hash) => location.replace(hash);
const anyName = () => NAMES.map((words) => words[Math.floor(Math.random() * words.length)]).join(" ");

/** Signs in unless somebody is: as whoever the field says. */
async function signedIn() {
  if (session.now) return;
  const field = /** @type {HTMLInputElement | null} */ (document.getElementById("name"));
  await signIn(field?.value.trim() || field?.placeholder || anyName());
}

/**
 * The first screen: who one is, the games, one's matches.
 * @param {HTMLElement} main
 */
export async function showLobby(main) {
  document.title = "Gloaming";
  const games = await Promise.all(GAMES.map(load));
  const mine = h("section", { class: "mine", "aria-labelledby": "mine" });
  main.replaceChildren(
    h(
      "div",
      { class: "lobby" },
      h("h1", {}, "Four games for the hour between day and night"),
      who(),
      h(
        "ul",
        { class: "games", "aria-label": "Games" },
        games.map((game) => h("li", {}, tile(game))),
      ),
      join(),
      mine,
    ),
  );
  const ended = new AbortController();
  const show = () => myMatches(mine, ended.signal).catch(complain);
  if (session.now) {
    live.open();
    show();
  }
  return () => ended.abort();
}

function who() {
  if (session.now)
    return h(
      "p",
      { class: "who" },
      "You play as ",
      h("b", {}, session.now.player.name),
      ". ",
      button("Change name", changeName, { class: "link" }),
    );
  return nameForm("Sign in", "");
}

function changeName() {
  const field = h("input", { id: "new-name", maxlength: 40, value: session.now.player.name, required: true });
  const close = dialog(
    "Change your name",
    h(
      "form",
      { class: "row", onsubmit: doing(async () => (await rename(field.value.trim()), close())) },
      h("label", { for: "new-name" }, "Name"),
      field,
      h("button", { class: "primary" }, "Change"),
    ),
  );
  field.select();
}

/** @param {import("./game.js").Game} game */
function tile(game) {
  const form = h("form", { class: "fields", onsubmit: (event) => event.preventDefault() }, fields(game));
  const start = doing(async () => {
    await signedIn();
    const { seats, order, ...wish } = read(game, form);
    const bots = Array.from({ length: seats - 1 }, () => ({ bot: "STANDARD" }));
    const listed = order ? bots.toSpliced(Number(order), 0, { player: "me" }) : [{ player: "me" }, ...bots];
    go(`#/match/${(await call("POST", "/matches", { ...wish, seats: listed, order: order ? "AS_LISTED" : "DRAWN" })).id}`);
  });
  const open = doing(async () => {
    await signedIn();
    const { order, ...wish } = read(game, form);
    go(`#/room/${(await call("POST", "/rooms", wish)).code}`);
  });
  const find = doing(async () => {
    await signedIn();
    const { order, seats, ...wish } = read(game, form);
    go(`#/find/${(await call("POST", "/tickets", { ...wish, seats: { min: game.seats[0], max: Math.max(seats, game.seats[0]) } })).id}`);
  });
  const [fewest, most] = game.seats;
  return h(
    "article",
    { class: `tile ${game.id}`, "aria-label": game.title },
    picture(game),
    h(
      "div",
      { class: "text" },
      h("h2", {}, game.title),
      h("p", {}, game.tagline),
      h(
        "p",
        { class: "row quiet" },
        fewest === most ? `${most} players` : `${fewest} to ${most} players`,
        button("Rules", () => rules(game), { class: "link", "aria-label": `Rules of ${game.title}` }),
      ),
    ),
    h(
      "div",
      { class: "row" },
      button("Play", start, { class: "primary", "aria-label": `Play ${game.title} against bots` }),
      button("With friends", open),
      button("Find opponents", find),
    ),
    h("details", {}, h("summary", {}, "Options"), form),
  );
}

function picture(game) {
  const art = game.art();
  art.setAttribute("preserveAspectRatio", "xMidYMax slice");
  return h("div", { class: "art" }, art);
}

function fields(game) {
  const [fewest, most] = game.seats;
  const field = (name, label, control, help) =>
    h(
      "label",
      { class: control.type === "checkbox" ? "check" : "" },
      h("span", {}, label),
      control,
      help && h("small", { class: "quiet" }, help),
    );
  const select = (name, choices, value) =>
    h(
      "select",
      { name },
      choices.map(([each, label]) => h("option", { value: each, selected: String(each) === String(value) }, label)),
    );
  const counts = Array.from({ length: most - fewest + 1 }, (_, index) => [fewest + index, plural(fewest + index, "player")]);
  return [
    fewest < most && field("seats", "Players", select("seats", counts, fewest)),
    game.roles &&
      field(
        "order",
        "You are (against bots)",
        select("order", [["", "Drawn by lot"], ...game.roles.map((role, seat) => [seat, role])], ""),
      ),
    game.options.map(({ name, label, kind, value, choices, min, max, step, help }) => {
      const control =
        kind === "choice"
          ? select(name, choices, value)
          : h(
              "input",
              kind === "check"
                ? { type: "checkbox", name, checked: value }
                : { type: "number", name, min, max, step, value, required: true },
            );
      return field(name, label, control, help);
    }),
    game.turns !== false && field("moveSeconds", "Clock", select("moveSeconds", CLOCKS, 300)),
    field("rated", "Counts for ratings", h("input", { type: "checkbox", name: "rated" })),
  ];
}

/** What a tile's form says. */
function read(game, form) {
  const control = (name) => form.elements.namedItem(name);
  const value = (name) =>
    control(name)?.type === "checkbox"
      ? control(name).checked
      : control(name)?.type === "number"
        ? control(name).valueAsNumber
        : control(name)?.value;
  if (!form.reportValidity()) throw new Error("One of the options is out of range.");
  return {
    game: game.id,
    options: Object.fromEntries(game.options.map(({ name }) => [name, value(name)])),
    settings: { rated: value("rated"), ...(control("moveSeconds") ? { moveSeconds: Number(value("moveSeconds")) } : {}) },
    seats: Number(value("seats") ?? game.seats[0]),
    order: value("order") || "",
  };
}

/** A code, a link or a match's id leads to a room or a match. */
function join() {
  const field = h("input", {
    id: "code",
    placeholder: "Code or link",
    autocapitalize: "characters",
    autocomplete: "off",
    spellcheck: "false",
    enterkeyhint: "go",
  });
  const follow = async () => {
    const text = field.value.trim();
    const [, place, id] = text.match(/#\/(room|match|replay)\/([\w-]+)/) ?? [];
    if (place) go(`#/${place}/${id}`);
    else if (/^[a-z]{6}$/i.test(text)) go(`#/room/${text.toUpperCase()}`);
    else if (/^[a-z_]+-[a-z0-9]+$/.test(text)) go(`#/match/${text}`);
    else throw new Error("That is no room’s code of six letters, no link, and no match’s id.");
  };
  return h(
    "form",
    { class: "row join", onsubmit: doing(follow) },
    h("label", { for: "code" }, "Join a friend’s room, or watch a match"),
    field,
    h("button", {}, "Go"),
  );
}

async function myMatches(box, signal) {
  const { matches } = await call("GET", `/players/me/matches?pageSize=${MOST_MATCHES}`, undefined, { signal });
  if (!matches.length) return;
  const rows = await Promise.all(matches.map(myMatch));
  box.replaceChildren(h("h2", { id: "mine" }, "Your matches"), h("ul", {}, rows));
}

function stateOf({ outcome, toMove, viewerSeat }, me) {
  if (!outcome) return viewerSeat != null && toMove.includes(viewerSeat) ? "your turn" : "going on";
  const { winners } = outcome;
  if (!winners.length) return "nobody won";
  if (!winners.includes(me)) return "lost";
  return winners.length > 1 ? "shared the win" : "won";
}

async function myMatch(match) {
  const { id, status, seats } = match;
  const game = await load(gameOf(id));
  const me = session.now?.player.id;
  const others = listed(seats.filter((seat) => seat.player !== me).map((seat) => seat.name));
  const over = status === "FINISHED";
  const state = stateOf(match, seats.find((seat) => seat.player === me)?.seat);
  return h(
    "li",
    { class: over ? "" : "live" },
    h("span", {}, h("b", {}, game?.title ?? gameOf(id)), " with ", others, h("span", { class: "quiet" }, ` · ${state}`)),
    game &&
      h(
        "span",
        { class: "row" },
        over
          ? h("a", { class: "button", href: `#/replay/${id}` }, "Replay")
          : h("a", { class: "button primary", href: `#/match/${id}` }, "Go on"),
      ),
  );
}

/**
 * Copies what a field shows. Where the page is not on https, only the old way is there.
 * @param {HTMLInputElement} field
 */
async function copy(field) {
  field.select();
  if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
  else document.execCommand("copy");
  notice("The link is copied.", 3000);
}

/**
 * Shows a screen to whoever has signed in; who has not is asked for a name first, and comes again then.
 * @param {HTMLElement} main
 * @param {string} text
 * @param {() => any} show
 */
export function forGuests(main, text, show) {
  if (session.now) return show();
  main.replaceChildren(h("div", { class: "panel" }, h("h1", {}, text), nameForm("Come in", "primary")));
}

/** Where one says one's name. @param {string} label @param {string} look */
function nameForm(label, look) {
  const signIn = doing(async () => (await signedIn(), dispatchEvent(new HashChangeEvent("hashchange"))));
  const field = h("input", { id: "name", maxlength: 40, autocomplete: "nickname", placeholder: anyName(), enterkeyhint: "go" });
  return h(
    "form",
    { class: "row who", onsubmit: signIn },
    h("label", { for: "name" }, "Your name"),
    field,
    h("button", { class: look }, label),
    h("span", { class: "quiet" }, "No password, no e-mail."),
  );
}

/**
 * A private table.
 * @param {HTMLElement} main
 * @param {string} code
 */
export async function showRoom(main, code) {
  document.title = `Room ${code} · Gloaming`;
  const path = `/rooms/${code}`;
  const me = session.now.player.id;
  const post = (verb, body = {}) => call("POST", `${path}:${verb}`, body);
  let room = await call("GET", path);
  const isIn = () => room.members.some((member) => member.player === me);
  if (!isIn() && room.status === "OPEN") room = await post("join");
  const game = await load(room.game);
  const was = { in: isIn() };

  const act = (label, verb, body, props) =>
    button(
      label,
      doing(async () => show(await post(verb, body))),
      { "data-key": `${verb}${JSON.stringify(body)}`, ...props },
    );
  const member = (each) => {
    const host = room.host === each.player && each.player;
    const state = each.bot === "STANDARD" ? "bot" : [host && "host", each.ready ? "ready" : "not ready yet"].filter(Boolean).join(", ");
    return h(
      "li",
      {},
      h("span", {}, h("b", {}, each.player === me ? `${each.name} (you)` : each.name), h("span", { class: "quiet" }, ` · ${state}`)),
      room.host === me && each.player && each.player !== me && act("Send out", "kick", { player: each.player }, { class: "subtle" }),
    );
  };
  const find = doing(async () => {
    const { options, settings } = room;
    go(`#/find/${(await call("POST", "/tickets", { game: room.game, options, settings, party: room.code })).id}`);
  });

  /** @param {any} now */
  function show(now) {
    if (now.code !== room.code || now.version < room.version) return;
    room = now;
    if (room.matchId) return move(`#/match/${room.matchId}`);
    if (was.in && !isIn()) {
      notice("You are no longer in the room.", 6000);
      return move("#/");
    }
    was.in = isIn();
    const mine = room.members.find((each) => each.player === me);
    const hosts = room.host === me;
    const waits = room.members.filter((each) => !each.ready && each.player !== room.host).map((each) => each.name);
    const bots = room.members.filter((each) => each.bot === "STANDARD").length;
    const link = /** @type {HTMLInputElement} */ (
      h("input", { id: "link", readonly: true, value: `${location.origin}/#/room/${room.code}`, onfocus: () => link.select() })
    );
    const few = room.members.length < game.seats[0];
    const box = h(
      "div",
      { class: "panel room" },
      h("h1", {}, game.title),
      h("p", {}, "Room ", h("strong", { class: "code" }, room.code), `, ${room.members.length} of ${room.seats} seats taken`),
      h(
        "div",
        { class: "row" },
        h("label", { for: "link" }, "Link to share"),
        link,
        button(
          "Copy",
          doing(() => copy(link)),
          { "data-key": "copy" },
        ),
        navigator.share &&
          button(
            "Share…",
            doing(() => navigator.share({ title: game.title, url: link.value })),
            { "data-key": "share" },
          ),
      ),
      h("ul", { class: "members", "aria-label": "Who is here" }, room.members.map(member)),
      !mine && h("p", {}, "The room is full, or its match has begun."),
      h(
        "div",
        { class: "row" },
        mine && !mine.ready && act("I am ready", "ready", { ready: true }, { class: "primary" }),
        mine?.ready && !hosts && act("Not ready after all", "ready", { ready: false }),
        hosts && act("Start", "start", {}, { class: mine?.ready ? "primary" : "", disabled: few || waits.length > 0 || !mine?.ready }),
        hosts && act("Add a bot", "addBot", {}, { disabled: room.members.length >= room.seats }),
        hosts && bots > 0 && act("Remove a bot", "removeBot", {}),
        hosts && !bots && button("Find opponents together", find, { "data-key": "find" }),
        button("Rules", () => rules(game), { "data-key": "rules" }),
        mine &&
          button(
            "Leave",
            doing(async () => (await post("leave"), go("#/"))),
            { class: "subtle", "data-key": "leave" },
          ),
      ),
      h(
        "p",
        { class: "quiet", role: "status" },
        few
          ? `At least ${game.seats[0]} are needed: share the link, or add bots.`
          : waits.length
            ? `Waiting until ${listed(waits)} ${waits.length > 1 ? "are" : "is"} ready.`
            : hosts
              ? ""
              : "Waiting for the host to start.",
      ),
    );
    const focused = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    main.replaceChildren(box);
    if (focused) (box.querySelector(`[data-key='${CSS.escape(focused)}']`) ?? box.querySelector("button.primary"))?.focus();
    if (room.ticketId && !hosts) move(`#/find/${room.ticketId}`);
  }

  live.rooms.add(show);
  live.open();
  show(room);
  return () => live.rooms.delete(show);
}

/**
 * Looking for opponents: what it waits for, until there is a match.
 * @param {HTMLElement} main
 * @param {string} id
 */
export async function showTicket(main, id) {
  document.title = "Looking for opponents · Gloaming";
  const game = await load(gameOf(id));
  if (!game) throw new Error("That is no search for opponents.");
  const ended = new AbortController();
  const what = h("p", { class: "waits" });
  let cancelling = false;
  const cancel = doing(async () => {
    cancelling = true;
    // It may be too late: then there is a match, which is told as ever.
    await call("DELETE", `/tickets/${id}`).finally(() => (cancelling = false));
    ended.abort();
    go("#/");
  });
  main.replaceChildren(
    h(
      "div",
      { class: "panel find" },
      picture(game),
      h("h1", {}, `Looking for opponents in ${game.title}`),
      what,
      h(
        "div",
        { class: "row" },
        button("Cancel", cancel),
        button("Rules", () => rules(game)),
      ),
    ),
  );

  const ENDS = {
    CANCELLED: "The search was cancelled.",
    EXPIRED: "The search has ended, since nobody looked at it any more.",
    FAILED: "The match could not be made.",
  };
  /** @param {any} now */
  function show(now) {
    if (now.id !== id || ended.signal.aborted) return;
    if (now.matchId) return move(`#/match/${now.matchId}`);
    if (ENDS[now.status]) {
      if (cancelling) return;
      notice(now.failure?.detail || ENDS[now.status], 8000);
      return move("#/");
    }
    what.textContent = now.explanation?.summary ?? "The match is being made.";
  }
  // Its explanation changes with time alone, and it expires unless it is looked at.
  const look = async () => {
    while (!ended.signal.aborted) {
      await call("GET", `/tickets/${id}`, undefined, { signal: ended.signal }).then(show, (error) => {
        complain(error);
        if (error.status === 404) move("#/");
      });
      await sleep(LOOK_EVERY);
    }
  };
  live.tickets.add(show);
  live.open();
  look();
  return () => {
    ended.abort();
    live.tickets.delete(show);
  };
}
