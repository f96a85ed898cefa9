// Files on their way to the server, and the fields and zones that take them.

import * as api from "./api.js";
import { h } from "./dom.js";
import { change, state } from "./state.js";
import { t } from "./text.js";

let lastKey = 0;

export const newKey = () => `k${++lastKey}`;

// An item on its way: {key, name, share, id, media, abort}. It has an id once the server has taken it.
export function send(file, { onDone = () => {}, onError }) {
  const item = { key: newKey(), name: file.name, share: 0, id: null, media: null };
  const { received, abort } = api.upload(file, (share) => {
    item.share = share;
    change({});
  });
  item.abort = abort;
  received
    .then((media) => {
      Object.assign(item, { id: media.id, media, share: 1 });
      change({});
      onDone(item);
    })
    .catch((error) => onError(item, error));
  return item;
}

// What is taken off the page goes from the server, too, unless a job was made with it.
export function drop(item) {
  if (!item) return;
  if (!item.id) item.abort();
  else if (!state.jobs?.some((job) => inputs(job).has(item.id))) api.forget(item.id);
}

// Ids of all uploads that a job was made with.
export function inputs({ request }) {
  const named = (request.face_map?.choices ?? []).flatMap(({ action, reference }) => [...(action?.photos ?? []), reference]);
  return new Set([request.target, ...request.sources, ...named]);
}

export function uploadText(item) {
  const percent = Math.round(item.share * 100);
  return percent < 100 ? t("upload.running", { percent }) : t("upload.checking");
}

export function picker({ accept, multiple, label, onFiles }) {
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
export function acceptDrops(element, onFiles) {
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

export function thumbnail(item, alt = "") {
  if (!item.id) return h("span", { class: "fd-thumb is-loading" });
  return h("img", { class: "fd-thumb", src: api.thumbnail(item.id), alt });
}

window.addEventListener("dragover", (event) => event.preventDefault());
window.addEventListener("drop", (event) => event.preventDefault());
