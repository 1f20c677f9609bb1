/** What every screen of the page uses: the notice, the dialog, and a swap of elements that people can follow. */

import { Away, Refused } from "./api.js";
import { button, h } from "./dom.js";

const at = (id) => document.getElementById(id);
const SLIDE = { duration: 280, easing: "cubic-bezier(.2,.7,.3,1)" };
let forget = 0;

/** Tells of something in passing; nothing takes it away again unless `ms` are given. @param {string} text @param {number} [ms] */
export function notice(text, ms = 0) {
  clearTimeout(forget);
  at("notice").textContent = text;
  if (ms) forget = setTimeout(() => (at("notice").textContent = ""), ms);
}

let unsay = 0;

/** What went wrong, in a sentence. @param {unknown} error */
export function sentence(error) {
  // What was foreseen is a Refused, an Away or a plain Error; anything else is a fault of this page.
  if (![Refused, Away, Error].includes(error?.constructor)) console.error(error);
  const text = error instanceof Error ? error.message : String(error);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Tells of something that went wrong, for some seconds. @param {unknown} error */
export function complain(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  clearTimeout(unsay);
  at("alert").textContent = sentence(error);
  unsay = setTimeout(() => (at("alert").textContent = ""), 6000);
}

/** A listener that does something that may fail, once at a time. @param {(event: Event) => Promise<any>} does */
export const doing = (does) => async (event) => {
  const target = event.currentTarget;
  event.preventDefault();
  if (target.ariaBusy === "true") return;
  target.ariaBusy = "true";
  await does(event).catch(complain);
  target.ariaBusy = "false";
};

/** Opens the dialog. @param {string} title @param {import("./dom.js").Child[]} content */
export function dialog(title, ...content) {
  const box = /** @type {HTMLDialogElement} */ (at("dialog"));
  const close = () => box.close();
  box.replaceChildren(
    h("header", {}, h("h2", { id: "dialog-title" }, title), button("Close", close, { class: "close" })),
    h("div", { class: "body" }, content),
  );
  box.onclick = (event) => event.target === box && close();
  box.showModal();
  return close;
}

/** Asks before something is done that cannot be undone. @param {string} title @param {string} text @param {string} yes @param {() => any} does */
export function confirm(title, text, yes, does) {
  const close = dialog(
    title,
    h("p", {}, text),
    h(
      "p",
      { class: "row" },
      button(yes, () => (close(), does()), { class: "danger" }),
      button("No", () => close()),
    ),
  );
}

/** How a game is played. @param {import("./game.js").Game} game */
export function rules(game) {
  const items = (section) => section.items.flatMap(([number, text]) => [h("dt", {}, number), h("dd", {}, text)]);
  dialog(
    `How ${game.title} is played`,
    game.rules.map((section) => [h("h3", {}, section.title), h("dl", { class: "rules" }, items(section))]),
  );
}

const keyed = (root) => new Map(Array.from(root.querySelectorAll("[data-key]"), (element) => [element.dataset.key, element]));
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Puts another drawing into a place: the focus stays where it was, what has moved slides, what is new is marked so.
 * @param {HTMLElement} root
 * @param {HTMLElement} drawing
 */
export function swap(root, drawing) {
  const before = keyed(root);
  const rects = new Map(Array.from(before, ([key, element]) => [key, element.getBoundingClientRect()]));
  const focused = root.contains(document.activeElement) ? (document.activeElement.closest("[data-key]")?.dataset.key ?? "") : null;
  const first = !root.firstChild;
  root.replaceChildren(drawing);
  const after = keyed(root);
  if (focused !== null) {
    const heir = after.get(focused);
    (heir && !heir.disabled ? heir : (root.querySelector("button.playable, button.primary") ?? root)).focus({ preventScroll: true });
  }
  if (first || calm()) return;
  for (const [key, element] of after) {
    const was = rects.get(key);
    if (!was) {
      element.classList.add("fresh");
      continue;
    }
    const is = element.getBoundingClientRect();
    const [x, y] = [was.left - is.left, was.top - is.top];
    if (Math.abs(x) + Math.abs(y) > 2) element.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], SLIDE);
  }
}
