/** Elements without markup in strings, so that nothing that a player typed can ever become markup. */

/**
 * @typedef {Node | string | number | null | undefined | false | Child[]} Child what `h` and `svg` take as children; nothing comes of
 *   null, undefined and false.
 */

/** @param {Element} element @param {Record<string, any>} props @param {Child[]} children */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

/**
 * An HTML element. `onclick` and the like are listeners, `vars` sets CSS custom properties, all else are attributes.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/**
 * An SVG element, likewise.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export const svg = (tag, props, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

/**
 * A small picture of one colour (`currentColor`), made of paths in a square of `size`. It is decoration: what it means is said in words beside it.
 * @param {string | string[]} paths
 * @param {string} [name] a class of its own
 */
export function icon(paths, name = "", size = 24) {
  const shapes = [paths].flat().map((d) => svg("path", { d }));
  return svg("svg", { class: `icon ${name}`, viewBox: `0 0 ${size} ${size}`, "aria-hidden": "true", focusable: "false" }, shapes);
}

// A shape a seat, so that nobody needs the colour to tell whose something is.
const EMBLEMS = [
  "M12 3a9 9 0 1 0 .01 0z",
  "M12 2.5 22 20.5H2z",
  "M4 4h16v16H4z",
  "M12 1.5 21 12l-9 10.5L3 12z",
  "M12 1.5l3.2 7 7.6.8-5.7 5.1 1.6 7.6-6.7-3.9L5.3 22l1.6-7.6L1.2 9.3l7.6-.8z",
  "M9 2h6v7h7v6h-7v7H9v-7H2V9h7z",
];
const SHAPES = ["circle", "triangle", "square", "diamond", "star", "cross"];

/** The emblem of a seat, in its colour. @param {number} seat */
export const emblem = (seat) => icon(EMBLEMS[seat], `emblem seat-${seat}`);

/** What the emblem of a seat looks like, in a word. @param {number} seat */
export const shape = (seat) => SHAPES[seat];

/** A button. @param {Child} label @param {(event: Event) => void} onclick @param {Record<string, any>} [props] */
export const button = (label, onclick, props) => h("button", { type: "button", onclick, ...props }, label);

/** A number, with a minus sign where it is below zero. @param {number} number */
export const signed = (number) => String(number).replace("-", "−");

/** "1 card", "2 cards". @param {number} count @param {string} noun */
export const plural = (count, noun) => `${signed(count)} ${noun}${count === 1 ? "" : "s"}`;

/** "Ann", "Ann and Bob", "Ann, Bob and Cid". @param {string[]} words */
export const listed = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

/** "1:05" @param {number} ms */
export function clock(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return seconds >= 3600
    ? `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
    : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
