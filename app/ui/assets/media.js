// Uploads: the picture or video to change, and photos of the face to put on it.

import * as api from "./api.js";
import { h, icon, Part } from "./dom.js";
import { errorBox, iconButton, mediaFacts, progressBar, setProgress } from "./parts.js";
import { showJob } from "./poll.js";
import { change, state } from "./state.js";
import { t } from "./text.js";

const PICTURES = "image/*,.heic,.heif,.avif";
const EVERYTHING = `${PICTURES},video/*,.mkv,.mov,.ts`;

let lastKey = 0;

// An item on its way: {key, name, share, id, media, abort}. It has an id once the server has taken it.
function send(file, onError) {
  const item = { key: ++lastKey, name: file.name, share: 0, id: null, media: null };
  const { received, abort } = api.upload(file, (share) => {
    item.share = share;
    change({});
  });
  item.abort = abort;
  received
    .then((media) => {
      Object.assign(item, { id: media.id, media, share: 1 });
      change({});
    })
    .catch((error) => onError(item, error));
  return item;
}

// What is taken off the page goes from the server, too, unless a job was made with it.
function drop(item) {
  if (!item) return;
  const isUsed = ({ request }) => request.target === item.id || request.sources.includes(item.id);
  if (!item.id) item.abort();
  else if (!state.jobs?.some(isUsed)) api.forget(item.id);
}

function uploadText(item) {
  const percent = Math.round(item.share * 100);
  return percent < 100 ? t("upload.running", { percent }) : t("upload.checking");
}

function picker({ accept, multiple, label, onFiles }) {
  return h("input", {
    type: "file",
    accept,
    multiple,
    class: "fd-file",
    "aria-label": label,
    onchange: (event) => {
      onFiles([...event.target.files]);
      event.target.value = ""; // so that the same file can be chosen again
    },
  });
}

// Files dropped on an element go to `onFiles`; dropped beside it they must not replace the page.
function acceptDrops(element, onFiles) {
  const mark = (isOver) => (event) => {
    event.preventDefault();
    element.classList.toggle("is-over", isOver);
  };
  element.ondragover = mark(true);
  element.ondragleave = mark(false);
  element.ondrop = (event) => {
    mark(false)(event);
    event.stopPropagation();
    onFiles([...event.dataTransfer.files]);
  };
}

window.addEventListener("dragover", (event) => event.preventDefault());
window.addEventListener("drop", (event) => event.preventDefault());

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
    const item = send(file, (failed, error) => state.target === failed && this.fail(error, { target: null }));
    change({ target: item });
    showJob(null);
  }

  remove() {
    this.error = null;
    drop(state.target);
    change({ target: null });
    this.querySelector("input").focus();
  }

  fail(error, patch = {}) {
    this.error = error;
    change(patch);
  }
}

class Faces extends Part {
  get facts() {
    return [state.faces.map((item) => [item.key, item.id]), this.error?.code];
  }

  draw() {
    acceptDrops(this, (files) => this.take(files));
    const tiles = state.faces.map((item, index) => this.tile(item, index + 1));
    const add = h(
      "label",
      { class: "fd-tile is-add", title: t("faces.add") },
      icon("plus"),
      picker({ accept: PICTURES, multiple: true, label: t("faces.add"), onFiles: (files) => this.take(files) }),
    );
    return [
      h("h3", {}, t("faces.title")),
      h("div", { class: "fd-tiles" }, tiles, add),
      h("p", { class: "fd-muted" }, t("faces.hint")),
      this.error && errorBox(this.error, () => this.fail(null)),
    ].filter(Boolean);
  }

  tile(item, number) {
    const remove = () => {
      drop(item);
      change({ faces: state.faces.filter((other) => other !== item) });
    };
    return h(
      "div",
      { class: "fd-tile" },
      thumbnail(item, t("faces.photo", { number })),
      item.id ? null : h("span", { class: "fd-percent", "data-key": item.key }),
      iconButton("close", t("faces.remove"), remove),
    );
  }

  refresh() {
    for (const label of this.querySelectorAll(".fd-percent")) {
      const item = state.faces.find((face) => String(face.key) === label.dataset.key);
      label.textContent = item && item.share < 1 ? `${Math.round(item.share * 100)} %` : "…";
    }
  }

  take(files) {
    this.error = null;
    const items = files.map((file) =>
      send(file, (failed, error) => this.fail(error, { faces: state.faces.filter((item) => item !== failed) })),
    );
    change({ faces: [...state.faces, ...items] });
  }

  fail(error, patch = {}) {
    this.error = error;
    change(patch);
  }
}

function thumbnail(item, alt = "") {
  if (!item.id) return h("span", { class: "fd-thumb is-loading" });
  return h("img", { class: "fd-thumb", src: api.thumbnail(item.id), alt });
}

customElements.define("fd-target", Target);
customElements.define("fd-faces", Faces);
