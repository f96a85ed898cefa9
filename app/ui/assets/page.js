// Brings the page to life: our elements, the line under Start, and the four calls that Gradio makes.

import "./faces.js";
import "./jobs.js";
import "./people.js";
import "./stage.js";
import "./target.js";
import { asked } from "./asked.js";
import { h, icon, Part } from "./dom.js";
import { errorBox } from "./parts.js";
import { missing } from "./missing.js";
import { refreshJobs, showJob, start } from "./poll.js";
import { previewDescribed } from "./preview.js";
import { refreshSaved } from "./saved.js";
import { change, isActive, state } from "./state.js";
import { has, language, listed, t } from "./text.js";

class Header extends Part {
  get facts() {
    return [status(), state.isOnline && state.devices];
  }

  draw() {
    const [now, devices] = this.facts;
    return [
      h("img", { class: "fd-logo", src: new URL("ui/favicon.svg", document.baseURI).href, alt: "" }),
      h("h1", {}, "FaceDock"),
      h("span", { class: "fd-tagline" }, t("app.tagline")),
      h(
        "span",
        { class: "fd-statuses" },
        devices && devices.map(deviceBadge),
        h("span", { class: `fd-status is-${now}`, role: "status" }, h("i"), t(`status.${now}`)),
      ),
    ];
  }
}

function status() {
  if (!state.isOnline) return "lost";
  if (state.problems.length) return "stuck";
  return state.jobs?.some(isActive) ? "busy" : "connected";
}

// On what the networks run. Without a graphics card everything works and takes longer: said where everybody sees it,
// and in a word where there is no room.
function deviceBadge(device) {
  const isSlow = device === "cpu";
  const long = has(`device.${device}`) ? t(`device.${device}`) : device;
  const short = has(`device.${device}.short`) ? t(`device.${device}.short`) : long;
  return h(
    "span",
    { class: `fd-status fd-device${isSlow ? " is-slow" : ""}`, title: isSlow && t("device.cpu.why"), "data-device": device },
    isSlow ? icon("alert") : h("i"),
    h("span", { class: "fd-long" }, long),
    h("span", { class: "fd-short", "aria-hidden": "true" }, short),
  );
}

// What is still needed, or what went wrong.
class Note extends Part {
  get facts() {
    return [missing(), state.isStarting, state.isUrged, state.startError?.code, state.startError?.message, state.isOnline];
  }

  draw() {
    if (!state.isOnline) return [line(t("error.connection"), true)];
    if (state.startError) return [errorBox(state.startError, () => change({ startError: null }))];
    if (state.isStarting) return [line(t("start.starting"))];
    const needed = missing().map((name) => t(`start.missing.${name}`));
    if (!needed.length) return [line(t("start.ready"))];
    return [line(t("start.missing", { list: listed(needed) }), state.isUrged)];
  }
}

const line = (text, isUrgent = false) => h("p", { class: isUrgent ? "is-urgent" : "", role: "status" }, isUrgent && icon("alert"), text);

customElements.define("fd-header", Header);
customElements.define("fd-note", Note);

const FIRST_FIELD = {
  target: "fd-target input",
  face: "fd-faces input",
  photo: "fd-faces input",
  which: "fd-faces .fd-chooser input",
  person: "fd-people select",
  timing: 'fd-timing [aria-invalid="true"]',
  consent: "#fd-consent input",
  step: ".fd-tick input",
};

// Before Gradio hears of it: a Start that cannot work says what is missing, and leads there.
document.addEventListener(
  "click",
  (event) => {
    if (!event.target.closest?.("#fd-start")) return;
    const needed = missing();
    if (!needed.length && !state.isStarting && state.isOnline) {
      change({ isStarting: true, isUrged: false, startError: null });
      return;
    }
    event.stopImmediatePropagation();
    event.preventDefault();
    change({ isUrged: needed.length > 0 });
    const field = FIRST_FIELD[needed[0]] && document.querySelector(FIRST_FIELD[needed[0]]);
    field?.closest("details")?.setAttribute("open", "");
    field?.focus({ preventScroll: true });
    // The whole group: whoever sees one answer only takes it for the only one.
    (field?.closest("fieldset") ?? field?.closest(".fd-card"))?.scrollIntoView({ block: "nearest" });
  },
  true,
);

window.facedock = {
  // The values that go to the server: what our own elements hold in place of the hidden field.
  chosen: ([, ...rest]) => [asked(), ...rest],

  described: previewDescribed,

  started(reply) {
    if (!reply?.job) {
      change({ isStarting: false, startError: reply?.error ?? { code: "internal.unexpected" } });
      return;
    }
    change({ isStarting: false, startError: null });
    showJob(reply.job);
    refreshJobs();
    document.getElementById("fd-center").scrollIntoView({ block: "nearest" });
  },

  consent: (basis) => change({ consent: basis, isUrged: false }),
  steps: (ticks) => change({ hasStep: ticks.some(Boolean) }),
};

// Gradio draws a group of choices without a name that a screen reader would say.
function nameGroups() {
  for (const group of document.querySelectorAll("fieldset:not([aria-label])")) {
    const title = group.querySelector('[data-testid="block-info"]');
    if (title) group.setAttribute("aria-label", title.textContent.trim());
  }
}

new MutationObserver(nameGroups).observe(document.body, { childList: true, subtree: true });
nameGroups();
document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
start();
refreshSaved();
