/** Where one is on the page, by the address after `#`; who is signed in; whether the line is there. */

import { session, signOut } from "./api.js";
import { button, h } from "./dom.js";
import { live } from "./live.js";
import { forGuests, showLobby, showRoom, showTicket } from "./lobby.js";
import { showMatch } from "./match.js";
import { notice, sentence } from "./page.js";

const THEME = "gloaming.theme";
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** What ends the screen that is shown. @type {() => void} */
let end = () => {};
let shown = 0;

const SCREENS = {
  room: (box, code) => forGuests(box, `You are invited to room ${code}`, () => showRoom(box, code)),
  find: (box, id) => forGuests(box, "Who is looking?", () => showTicket(box, id)),
  match: (box, id) => forGuests(box, "Who is watching?", () => showMatch(box, id, false)),
  replay: (box, id) => forGuests(box, "Who is watching?", () => showMatch(box, id, true)),
};

async function show() {
  const turn = ++shown;
  const before = end;
  end = () => {};
  before();
  const [, place, id] = location.hash.match(/^#\/(\w+)\/([\w-]+)$/) ?? [];
  const screen = Object.hasOwn(SCREENS, place ?? "") ? SCREENS[place] : showLobby;
  // Each screen has a box of its own: one that was left while it was still being made draws where nobody sees it.
  const box = h("div", {}, h("p", { class: "quiet" }, "…"));
  main.replaceChildren(box);
  try {
    const ends = (await screen(box, id)) ?? (() => {});
    if (turn === shown) end = ends;
    else ends();
  } catch (error) {
    if (turn !== shown) return;
    box.replaceChildren(h("div", { class: "panel" }, h("p", { role: "alert" }, sentence(error)), h("a", { class: "button", href: "#/" }, "To the games")));
  }
  if (!main.contains(document.activeElement)) main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** The page's own tools: dark or light, and signing out. */
function drawNav() {
  const light = theme() === "light";
  const toggle = () => {
    localStorage.setItem(THEME, light ? "dark" : "light");
    drawNav();
    document.querySelector("#nav .theme").focus();
  };
  document.documentElement.dataset.theme = theme();
  document.querySelector("meta[name=theme-color]").content = light ? "#f3eefb" : "#171a2b";
  const out = async () => {
    live.close();
    await signOut();
    location.hash = "#/";
  };
  document
    .getElementById("nav")
    .replaceChildren(
      ...[
        button(light ? "Dark" : "Light", toggle, { class: "theme subtle", "aria-label": light ? "Dark colours" : "Light colours" }),
        session.now && button("Sign out", out, { class: "subtle" }),
      ].filter(Boolean),
    );
}

const theme = () => localStorage.getItem(THEME) ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");

let player = session.now?.player.id;
session.onchange = (elsewhere) => {
  const now = session.now?.player.id;
  drawNav();
  if (now === player && location.hash.length > 2) return;
  if (player && now !== player) live.close();
  const out = player && !now;
  player = now;
  // Who signs in here is on the way to somewhere already.
  if (out || elsewhere) show();
};

let wasAway = false;
live.onstate = (state, wait) => {
  document.documentElement.dataset.line = state;
  if (state === "away") {
    wasAway = true;
    notice(wait > 2000 ? "The line is gone. Trying again in some seconds." : "The line is gone. Trying again.");
  } else if (state === "open" && wasAway) {
    wasAway = false;
    notice("Connected again: going on where you were, nothing is missed.", 5000);
  } else if (state === "off" && wasAway) {
    wasAway = false;
    notice("");
  }
};

addEventListener("hashchange", show);
matchMedia("(prefers-color-scheme: light)").addEventListener("change", drawNav);
drawNav();
show();
