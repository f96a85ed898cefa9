// Which part of a video is made, and how many frames a second it gets.

import { h, Part } from "./dom.js";
import { change, state } from "./state.js";
import { t, time } from "./text.js";

const MAX_FPS = 240;
const FIELDS = ["start", "end", "fps"];

// "90", "1:30" or "0:01:30.5" in seconds; null for what is no time.
export function seconds(text) {
  const parts = text.trim().replace(",", ".").split(":");
  if (parts.length > 3 || !parts.every((part, at) => (at === parts.length - 1 ? /^\d+(\.\d+)?$/ : /^\d+$/).test(part))) return null;
  if (parts.slice(1).some((part) => Number(part) >= 60)) return null;
  return parts.reduce((sum, part) => sum * 60 + Number(part), 0);
}

const isVideo = () => state.target?.media?.kind === "video";
const isSet = (name) => isVideo() && state.timing[name].trim() !== "";

function values() {
  const { start, end, fps } = state.timing;
  return {
    start: isSet("start") ? seconds(start) : 0,
    end: isSet("end") ? seconds(end) : null,
    fps: isSet("fps") ? Number(fps.trim().replace(",", ".")) : null,
  };
}

// [field, key of a text], one for each field that makes no sense.
export function timingErrors() {
  const { start, end, fps } = values();
  const duration = state.target?.media?.info?.duration_s;
  const errors = [];
  if (start === null) errors.push(["start", "timing.error.time"]);
  else if (duration && start >= duration) errors.push(["start", "timing.error.late"]);
  if (isSet("end") && end === null) errors.push(["end", "timing.error.time"]);
  else if (end !== null && start !== null && end <= start) errors.push(["end", "timing.error.order"]);
  if (fps !== null && !(fps > 0 && fps <= MAX_FPS)) errors.push(["fps", "timing.error.fps"]);
  return errors;
}

export function timing() {
  const { start, end, fps } = values();
  return { start_s: start ?? 0, end_s: end, fps };
}

class TimingFields extends Part {
  get facts() {
    return [isVideo(), state.target?.id];
  }

  draw() {
    if (!isVideo()) return [];
    const isOpen = FIELDS.some((name) => state.timing[name]);
    return [
      h(
        "details",
        { class: "fd-details", open: isOpen },
        h("summary", {}, t("timing.title")),
        h("div", { class: "fd-timing" }, FIELDS.map((name) => this.field(name))),
      ),
    ];
  }

  field(name) {
    const duration = state.target.media.info?.duration_s;
    const placeholder = { start: "0:00", end: duration ? time(duration) : "", fps: t("timing.fps.all") }[name];
    const input = h("input", {
      type: "text", inputmode: name === "fps" ? "decimal" : "text", autocomplete: "off", placeholder, "data-field": name,
      "aria-label": t(`timing.${name}`), "aria-describedby": `fd-timing-${name}`,
      oninput: () => change({ timing: { ...state.timing, [name]: input.value } }),
    });
    input.value = state.timing[name];
    return h("label", { class: "fd-field" }, h("span", {}, t(`timing.${name}`)), input, h("span", { class: "fd-field-error", id: `fd-timing-${name}`, role: "alert" }));
  }

  refresh() {
    const errors = Object.fromEntries(timingErrors());
    for (const input of this.querySelectorAll("input")) {
      const key = errors[input.dataset.field];
      const line = this.querySelector(`#fd-timing-${input.dataset.field}`);
      const text = key ? t(key, { max: MAX_FPS, time: time(state.target.media.info?.duration_s ?? 0) }) : "";
      if (line.textContent !== text) line.textContent = text;
      input.setAttribute("aria-invalid", key ? "true" : "false");
    }
  }
}

customElements.define("fd-timing", TimingFields);
