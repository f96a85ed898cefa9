// Small pieces that several elements show.

import { h, icon } from "./dom.js";
import { figure, has, joined, t, time } from "./text.js";

// What went wrong, what to do, and the code that support asks for; read out politely.
export function errorBox(error, onClose = null) {
  const key = `error.${error.code}`;
  const sentence = has(key) ? t(key) : t("error.unexpected");
  const detail = error.message && error.message !== error.hint && error.message !== sentence ? error.message : "";
  return h(
    "div",
    { class: "fd-error", role: "alert" },
    icon("alert"),
    h(
      "div",
      {},
      h("strong", {}, t("error.title")),
      h("p", {}, sentence),
      detail && h("p", { class: "fd-detail" }, detail),
      h("code", {}, error.code),
    ),
    onClose && iconButton("close", t("error.close"), onClose),
  );
}

export function iconButton(name, label, onclick) {
  return h("button", { type: "button", class: "fd-icon-button", "aria-label": label, title: label, onclick }, icon(name));
}

export function progressBar(label) {
  return h("div", { class: "fd-progress", role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 }, h("span"));
}

// A share of null is "nobody knows yet".
export function setProgress(bar, share) {
  bar.classList.toggle("is-open", share == null);
  if (share == null) bar.removeAttribute("aria-valuenow");
  else bar.setAttribute("aria-valuenow", Math.round(share * 100));
  bar.firstChild.style.width = share == null ? "" : `${share * 100}%`;
}

// The size on a line of its own, below it what a video has more.
export function mediaFacts(media) {
  const { size_wh: size, rate, frames, duration_s: duration } = media.info ?? {};
  const isVideo = media.kind === "video";
  const inTime = joined([
    isVideo && rate && t("media.fps", { rate: figure(ratio(rate), 2) }),
    isVideo && duration && time(duration),
    isVideo && !duration && frames && t("media.frames", { frames: figure(frames) }),
  ]);
  return [size && `${size[0]}×${size[1]}`, inTime].filter(Boolean).join("\n");
}

// Rates travel as a number, as "30000/1001", or as [30000, 1001].
export function ratio(value) {
  const [above, below = 1] = Array.isArray(value) ? value : String(value).split("/");
  return Number(above) / Number(below);
}

export function jobState(job) {
  if (job.is_cancel_requested && (job.state === "queued" || job.state === "running")) return t("job.canceling");
  if (job.state === "queued" && job.queue_position) return t("job.queued.position", { position: job.queue_position });
  if (job.state === "running" && !job.progress?.frames_done) return t("job.preparing");
  return t(`job.${job.state}`);
}

export function jobShare(job) {
  const { frames_done: done, frames_total: total } = job.progress ?? {};
  return job.state === "running" && done && total ? Math.min(1, done / total) : null;
}
