/**
 * What the page asks of a game: one module a game, `games/<id>.js`, and beside it `games/<id>.css`, which is loaded with it.
 *
 * A module knows nothing of the network. It gets JSON as the API has it (proto/gloaming/<game>/v1) and gives elements and words. All that
 * it draws follows from the table that it is given, so that it can be drawn anew whenever anything happened. Elements with the attribute
 * `data-key` are the same thing from one drawing to the next: the page keeps the focus on them, slides them from where they were to where
 * they are, and gives the class `fresh` to those that were not there before.
 *
 * What it sets stands on three classes of elements that style.css knows: `playable` for what can be chosen now, `chosen` for what is, and
 * `seat-0` to `seat-5`, in which `--seat` is that seat's colour. Everything that can be clicked is a button or a form field, 44 px or more.
 */

/**
 * @typedef {Object} Seat a seat of a match, as in gloaming.table.v1
 * @property {number} seat
 * @property {string} name
 * @property {string} player
 * @property {string} bot
 * @property {boolean} resigned
 * @property {boolean} standIn
 * @property {boolean} connected
 * @property {string} [deadline]
 */

/**
 * @typedef {Object} Table a match as it stands on the table
 * @property {any} view what the viewer may know now: the game's `View`
 * @property {number | null} me the viewer's seat; null for those who watch
 * @property {Seat[]} seats
 * @property {number[]} toMove the seats that may move now
 * @property {any} options the game's `Options`
 * @property {any[]} legal every legal move of mine now; empty unless it is my turn, and in a replay
 * @property {(seat: number) => string} name what to call a seat: "You" or its name
 * @property {(move: any) => Promise<boolean>} play plays a move, and tells whether it was accepted; whatever was chosen is forgotten
 * @property {any} ui what the player has chosen so far, the module's to fill: an empty object again after each move played
 * @property {() => void} redraw draws again, after a change of `ui`
 * @property {() => number} now the server's time, in ms since the epoch
 * @property {() => number | null} roundTrip the round trip of this page's line as measured from here, in ms
 * @property {boolean} replay whether it is a finished match that is looked at
 */

/**
 * @typedef {Object} Step a step of the final scoring
 * @property {string} title
 * @property {Child[]} lines what happened, in words or elements
 * @property {(number | null)[]} [points] by seat; absent in all steps of a game without points
 */

/**
 * @typedef {Object} Field a field of the form for a new match
 * @property {string} name of the option, as in the API
 * @property {string} label
 * @property {"choice" | "number" | "check"} kind
 * @property {any} value the default
 * @property {[string, string][]} [choices] value and label
 * @property {number} [min]
 * @property {number} [max]
 * @property {number} [step]
 * @property {string} [help]
 */

/**
 * @typedef {Object} Game
 * @property {string} id
 * @property {string} title
 * @property {string} tagline a sentence or two for the tile
 * @property {[number, number]} seats fewest and most
 * @property {string[]} [roles] what the seats are, where they differ; who plays bots may choose one
 * @property {boolean} [turns] false where everybody acts at once, so that no seat is marked as the one to move
 * @property {Field[]} options
 * @property {() => SVGElement} art the picture of the tile
 * @property {{title: string, items: [string, string][]}[]} rules how to play: number of the rule (NC-06) and what it says, in a few words
 * @property {(table: Table) => HTMLElement} board draws the match
 * @property {(table: Table) => string} prompt what is to be done now, in a sentence: "Choose a card from your hand."
 * @property {(table: Table, seat: number) => string} note what everybody may know of a seat, in a few words: "3 in hand, 8 in the deck"
 * @property {(event: any, table: Table) => string | null} event an event in words; null where it is not worth a line. `table` is as it was
 *   before the event. The page itself tells of `seatChanged` and `matchFinished`.
 * @property {(view: any, event: any, me: number | null) => any} apply the view after an event, without changing the one given. The page asks
 *   the server for the real one soon after; in a replay, this is all there is.
 * @property {(match: any, record: any) => any} first the view before the first event; `match` is as it is now. In a replay there is the match's
 *   `Record`, else null: what was hidden while it was played may be read from its moves then, and be shown as such
 * @property {(table: Table) => Step[]} scoring the final scoring, step by step; empty where nothing was scored
 */

/** @typedef {import("./dom.js").Child} Child */

/** The games that have a module, in the order in which the page offers them. */
export const GAMES = ["night_clan", "clans_and_glory", "dark_is_the_night", "night_knight"];

/** @type {Map<string, Promise<Game | null>>} */
const loaded = new Map();

/**
 * A game's module; null where the page has none.
 * @param {string} id
 * @returns {Promise<Game | null>}
 */
export function load(id) {
  if (!loaded.has(id)) {
    loaded.set(id, GAMES.includes(id) ? import(`./games/${id}.js`).then((module) => styled(module.default)) : Promise.resolve(null));
  }
  return loaded.get(id);
}

/** The match that an id belongs to begins with its game. @param {string} matchId */
export const gameOf = (matchId) => matchId.split("-")[0];

/** @param {Game} game */
function styled(game) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = `/web/games/${game.id}.css`;
  return new Promise((done) => {
    link.onload = link.onerror = () => done(game);
    document.head.append(link);
  });
}
