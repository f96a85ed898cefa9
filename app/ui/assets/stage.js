// The big card in the middle: what will be changed, how far it is, what became of it.

import * as api from "./api.js";
import { h, icon, Part } from "./dom.js";
import { errorBox, jobShare, jobState, progressBar, setProgress } from "./parts.js";
import { knownMedia } from "./known.js";
import { missing } from "./missing.js";
import { placesAt } from "./people.js";
import { showJob, refreshJobs } from "./poll.js";
import { askPreview, closePreview } from "./preview.js";
import { change, isActive, shownJob, state } from "./state.js";
import { figure, has, joined, t, time } from "./text.js";

class Stage extends Part {
  get facts() {
    const job = shownJob();
    if (job) return [job.id, isActive(job) ? "active" : job.state, job.error?.code, knownMedia(job.request.target)?.id];
    const { status, seconds, error } = state.preview ?? {};
    return [state.jobId && !state.jobs, state.target?.id, status, seconds, error?.code];
  }

  draw() {
    const job = shownJob();
    return [h("h2", {}, t(job ? "section.result" : "section.preview")), ...this.content(job)];
  }

  content(job) {
    if (!job) return state.target?.id ? this.preview(state.target.media) : this.empty();
    if (isActive(job)) return this.running(job);
    return job.state === "done" ? this.done(job) : this.ended(job);
  }

  empty() {
    return [
      viewport(
        h("div", { class: "fd-empty" }, icon("picture"), h("p", {}, t("stage.empty.title")), h("p", { class: "fd-muted" }, t("stage.empty.text"))),
      ),
    ];
  }

  preview(media) {
    const { status, after, before, seconds, faces, error } = state.preview ?? {};
    this.marks = h("div", { class: "fd-marks", "aria-hidden": "true" });
    if (status === "shown") {
      const shown = compared(before, after, { left: t("stage.target"), right: t("stage.previewed") });
      this.moment = () => seconds;
      return [
        viewport(fitted(media, shown, this.marks)),
        strip(h("p", { class: "fd-headline", role: "status" }, icon("check"), changed(faces)), button(t("preview.close"), closePreview)),
      ];
    }
    const shown = show(media, api.content(media.id), { title: media.name });
    this.moment = () => shown.currentTime ?? 0;
    for (const event of ["timeupdate", "seeked", "pause"]) shown.addEventListener(event, () => this.refresh());
    const ask = button([icon("eye"), t(media.kind === "video" ? "preview.frame" : "preview.picture")], () => askFor(media, shown));
    ask.disabled = status === "working";
    const said = status === "failed" ? errorBox(error, closePreview) : h("p", { class: "fd-muted", role: "status" }, t(status === "working" ? "preview.working" : "preview.hint"));
    return [viewport(fitted(media, shown, this.marks)), strip(said, ask)];
  }

  // The numbers of the people, where they are at the moment that is shown.
  mark() {
    const places = this.moment ? placesAt(this.moment()) : [];
    const facts = JSON.stringify(places);
    if (this.marks.dataset.facts === facts) return;
    this.marks.dataset.facts = facts;
    this.marks.replaceChildren(...places.map(markOf));
  }

  running(job) {
    const media = knownMedia(job.request.target);
    this.bar = progressBar(t("job.progress", { name: media?.name ?? "" }));
    this.headline = h("p", { class: "fd-headline", role: "status" });
    this.numbers = h("p", { class: "fd-muted fd-numbers" });
    this.busy = h("p", { class: "fd-muted fd-busy", title: t("busy.why") });
    this.cancelButton = h("button", { type: "button", class: "fd-button", onclick: () => cancel(job.id) }, t("stage.cancel"));
    const picture = h("img", { class: "fd-dim", src: api.thumbnail(job.request.target), alt: "" });
    return [
      viewport(media ? fitted(media, picture) : picture),
      strip(h("div", { class: "fd-running" }, this.headline, this.numbers, this.bar), this.cancelButton),
      this.busy,
    ];
  }

  refresh() {
    const job = shownJob();
    if (!job && this.marks?.isConnected) this.mark();
    if (!job || !isActive(job)) return;
    const text = jobState(job);
    // Written only when it changes: a status line is read out each time.
    if (this.headline.textContent !== text) this.headline.textContent = text;
    this.numbers.textContent = runningNumbers(job) || state.problems.map((code) => t(`error.${code}`)).join(" ") || "\u00a0";
    this.busy.replaceChildren(...busyParts(job));
    setProgress(this.bar, jobShare(job));
    this.cancelButton.disabled = job.is_cancel_requested;
  }

  done(job) {
    const media = knownMedia(job.request.target);
    const address = api.result(job.id);
    const shown = media?.kind === "video" ? show(media, address, { title: t("stage.result") }) : comparison(job);
    return [
      viewport(media ? fitted(media, shown) : shown),
      strip(
        h("div", {}, h("p", { class: "fd-headline", role: "status" }, icon("check"), swapped(job, media)), h("p", { class: "fd-muted" }, t("stage.label"))),
        h("a", { class: "fd-button is-primary", href: api.result(job.id), download: job.result.name }, icon("download"), t("stage.download")),
      ),
      notices(job),
    ];
  }

  ended(job) {
    const media = knownMedia(job.request.target);
    const picture = h("img", { class: "fd-dim", src: api.thumbnail(job.request.target), alt: "" });
    const said = job.state === "canceled" ? h("p", { class: "fd-headline", role: "status" }, t("job.canceled")) : errorBox(job.error);
    return [
      viewport(media ? fitted(media, picture) : picture),
      strip(said, h("button", { type: "button", class: "fd-button", onclick: () => showJob(null) }, t("stage.new"))),
    ];
  }
}

// The frame as it is now, to compare with; a player's frame is copied, since the player is gone then.
async function askFor(media, shown) {
  const needed = missing().filter((name) => name !== "timing");
  if (needed.length) {
    change({ isUrged: true });
    return;
  }
  shown.pause?.();
  const isPlayer = shown.localName === "video";
  askPreview(shown.currentTime ?? 0, isPlayer ? await copied(shown) : api.content(media.id));
}

function copied(video) {
  const canvas = h("canvas", { width: video.videoWidth || 16, height: video.videoHeight || 9 });
  canvas.getContext("2d").drawImage(video, 0, 0);
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(blob ? URL.createObjectURL(blob) : api.thumbnail(state.target.id)), "image/jpeg", 0.9));
}

const changed = (faces) => (faces === 0 ? t("preview.none") : faces === 1 ? t("stage.swapped.still.one") : t("stage.swapped.still", { faces: figure(faces) }));

function markOf({ number, isChanged, box: [x0, y0, x1, y1] }) {
  const place = `left:${100 * x0}%;top:${100 * y0}%;width:${100 * (x1 - x0)}%;height:${100 * (y1 - y0)}%`;
  return h("span", { class: `fd-mark${isChanged ? " is-changed" : ""}`, style: place }, h("b", {}, String(number)));
}

async function cancel(id) {
  await api.cancel(id).catch(() => null);
  refreshJobs();
}

function runningNumbers(job) {
  const { frames_done: done, frames_total: total, fps, remaining_s: left } = job.progress ?? {};
  if (!done || total === 1) return "";
  return joined([
    total ? t("job.frames", { done: figure(done), total: figure(total) }) : t("job.frames.open", { done: figure(done) }),
    fps && t("job.fps", { fps: figure(fps, 1) }),
    left != null && t("job.left", { time: time(left) }),
  ]);
}

// How busy each part is, the one that sets the pace in bold.
function busyParts(job) {
  const { busy = {}, frames_done: done, frames_total: total } = job.progress ?? {};
  const parts = Object.entries(busy).filter(([part]) => has(`busy.${part}`));
  if (!done || total === 1 || !parts.length) return [];
  const most = Math.max(...parts.map(([, share]) => share));
  const words = parts.map(([part, share]) =>
    h(share === most ? "strong" : "span", {}, t("busy.part", { part: t(`busy.${part}`), percent: figure(100 * share) })),
  );
  return [t("busy.title"), ...words.flatMap((word, index) => [index ? " · " : " ", word])];
}

function swapped(job, media) {
  const { frames, frames_swapped: changed, faces_swapped: faces } = job.result;
  if (media?.kind === "video" || frames > 1) {
    return t("stage.swapped.video", { swapped: figure(changed), frames: figure(frames) });
  }
  return faces === 1 ? t("stage.swapped.still.one") : t("stage.swapped.still", { faces: figure(faces) });
}

function notices(job) {
  if (!job.result.notices.length) return "";
  return h("ul", { class: "fd-notices" }, job.result.notices.map((notice) => h("li", {}, notice.message)));
}

const viewport = (content) => h("div", { class: "fd-viewport" }, h("div", { class: "fd-frame" }, content));
const button = (content, onclick) => h("button", { type: "button", class: "fd-button", onclick }, ...[content].flat());
const strip = (...children) => h("div", { class: "fd-strip" }, ...children);

// A box with the medium's own shape, as large as the viewport allows, so that nothing moves when the pixels arrive.
function fitted(media, ...content) {
  const [width, height] = media.info?.size_wh ?? [16, 9];
  return h("div", { class: "fd-fitted", style: `--ratio: ${width / height}` }, ...content);
}

// Pictures that move: browsers show them like any other picture, and not in a player.
const ANIMATIONS = new Set(["gif", "apng", "animated-webp"]);

function show(media, address, { title }) {
  if (media.kind === "video" && !ANIMATIONS.has(media.info?.container)) {
    return h("video", { src: address, controls: true, playsinline: true, preload: "metadata", title, poster: null });
  }
  return orThumbnail(h("img", { src: address, alt: title }), media.id);
}

// Some kinds of picture no browser shows; the server's small JPEG is better than a broken icon.
function orThumbnail(image, mediaId) {
  image.addEventListener("error", () => (image.src = api.thumbnail(mediaId)), { once: true });
  return image;
}

function comparison(job) {
  const box = compared(api.content(job.request.target), api.result(job.id), { left: t("stage.target"), right: t("stage.result"), mediaId: job.request.target });
  const after = box.querySelector(".fd-after");
  after.addEventListener("error", () => box.replaceChildren(box.firstChild, h("p", { class: "fd-badge" }, t("stage.unshowable"))));
  return box;
}

// Two pictures over each other and a slider that says how much of each; the slider is a real one, for the keyboard.
function compared(before, after, { left, right, mediaId = state.target?.id }) {
  const slider = h("input", {
    type: "range", min: 0, max: 100, step: 0.5, value: 15, class: "fd-compare", "aria-label": t("stage.compare"),
    oninput: () => box.style.setProperty("--split", `${slider.value}%`),
  });
  const box = h(
    "div",
    { class: "fd-comparison" },
    orThumbnail(h("img", { src: before, alt: left }), mediaId),
    h("img", { class: "fd-after", src: after, alt: right }),
    h("span", { class: "fd-badge is-left" }, left),
    h("span", { class: "fd-badge is-right" }, right),
    h("span", { class: "fd-handle" }, icon("swap")),
    slider,
  );
  return box;
}

customElements.define("fd-stage", Stage);
