// Elements without a framework. Text always goes in as text, never as markup: names come from strangers.

import { onChange } from "./state.js";

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

const ICONS = {
  upload: "M12 16V5m0 0L7.5 9.5M12 5l4.5 4.5M5 19h14",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  swap: "M8 7l-4 4 4 4M16 9l4 4-4 4M4 11h9M20 13h-9",
  download: "M12 4v11m0 0l-4.5-4.5M12 15l4.5-4.5M5 20h14",
  alert: "M12 8v5m0 3.2v.3M12 3.5l9 16H3z",
  picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
  check: "M5 12.5l4.5 4.5L19 7.5",
  arrow: "M5 12h14m-5-5l5 5-5 5",
  blur: "M4 8h10M17 8h3M4 12h3M10 12h10M4 16h12",
  pencil: "M4 20l1-4L16 5l3 3L8 19zM13.5 7.5l3 3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5",
};

export function icon(name) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "fd-icon");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

// A custom element that draws itself from the page's state, and once more whenever what it shows changes.
export class Part extends HTMLElement {
  connectedCallback() {
    this.stop = onChange(() => this.update());
    this.shown = undefined;
    this.update();
  }

  disconnectedCallback() {
    this.stop();
  }

  // What the drawing depends on; the same answer leaves the drawing alone, so that a player goes on playing.
  get facts() {
    return "";
  }

  update() {
    const facts = JSON.stringify(this.facts);
    if (facts !== this.shown) {
      const held = this.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
      this.shown = facts;
      this.replaceChildren(...this.draw());
      // Whoever works with the keyboard stays where they were.
      if (held) this.querySelector(`[aria-label="${CSS.escape(held)}"]`)?.focus();
    }
    this.refresh();
  }

  refresh() {}
}
