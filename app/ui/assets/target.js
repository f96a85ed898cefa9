// The picture or video to change.

import { h, icon, Part } from "./dom.js";
import { errorBox, mediaFacts, progressBar, setProgress } from "./parts.js";
import { showJob } from "./poll.js";
import { change, state } from "./state.js";
import { t } from "./text.js";
import { acceptDrops, drop, picker, send, thumbnail, uploadText } from "./upload.js";

const EVERYTHING = "image/*,.heic,.heif,.avif,video/*,.mkv,.mov,.ts";

// What was chosen for one file says nothing of the next one.
const NOTHING_CHOSEN = { choices: {}, others: null, timing: { start: "", end: "", fps: "" }, preview: null };

class Target extends Part {
  get facts() {
    return [state.target?.key, state.target?.id, this.error?.code];
  }

  draw() {
    acceptDrops(this, (files) => this.take(files));
    const choose = picker({
      accept: EVERYTHING,
      label: t("target.title"),
      onFiles: (files) => this.take(files),
    });
    const body = state.target ? this.card(state.target, choose) : this.emptyZone(choose);
    return [body, this.error && errorBox(this.error, () => this.fail(null))].filter(Boolean);
  }

  emptyZone(choose) {
    return h(
      "div",
      { class: "fd-drop" },
      icon("upload"),
      h("p", {}, t("target.drop")),
      h("label", { class: "fd-button" }, t("target.choose"), choose),
    );
  }

  card(item, choose) {
    this.bar = item.id ? null : progressBar(t("upload.checking"));
    this.line = h("p", { class: "fd-muted" }, item.id ? mediaFacts(item.media) : "");
    return h(
      "div",
      { class: "fd-media-card" },
      thumbnail(item),
      h("div", { class: "fd-media-text" }, h("p", { class: "fd-name", title: item.name }, item.name), this.line, this.bar),
      h(
        "div",
        { class: "fd-media-actions" },
        h("label", { class: "fd-button is-small" }, t("target.replace"), choose),
        h("button", { type: "button", class: "fd-button is-small is-quiet", onclick: () => this.remove() }, t("target.remove")),
      ),
    );
  }

  refresh() {
    if (!state.target || state.target.id) return;
    this.line.textContent = uploadText(state.target);
    setProgress(this.bar, state.target.share < 1 ? state.target.share : null);
  }

  take([file]) {
    if (!file) return;
    this.error = null;
    drop(state.target);
    const onError = (failed, error) => state.target === failed && this.fail(error, { target: null });
    change({ target: send(file, { onError }), ...NOTHING_CHOSEN });
    showJob(null);
  }

  remove() {
    this.error = null;
    drop(state.target);
    change({ target: null, ...NOTHING_CHOSEN });
    this.querySelector("input").focus();
  }

  fail(error, patch = {}) {
    this.error = error;
    change(patch);
  }
}

customElements.define("fd-target", Target);
