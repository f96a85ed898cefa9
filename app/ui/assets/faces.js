// The faces to put on: each is one person, with one or more photos or saved earlier; where a photo shows several people,
// one is chosen.

import * as api from "./api.js";
import { h, icon, Part } from "./dom.js";
import { errorBox, iconButton } from "./parts.js";
import { whenAnswered } from "./retry.js";
import { forgetFace, renameFace, saveFace } from "./saved.js";
import { change, state } from "./state.js";
import { t } from "./text.js";
import { acceptDrops, drop, newKey, picker, send, thumbnail } from "./upload.js";

const PICTURES = "image/*,.heic,.heif,.avif";

// A face: {key, photos: items, chosen: number of the face in its one photo, saved}. An item has `seen` once it was looked
// at; a saved face has no photos.
export const faceName = (face) => face.saved?.name ?? t("faces.name", { number: state.faces.indexOf(face) + 1 });

// What is wrong with a photo: "none" where it shows no face, "several" where it shows more and nobody has chosen.
export function verdict(face, item) {
  if (!item.seen) return null;
  if (!item.seen.faces.length) return "none";
  return item.seen.meant == null && face.chosen == null ? "several" : null;
}

// The picture that stands for a face.
export function facePicture(face, alt = "") {
  if (face.saved) return h("img", { class: "fd-thumb", src: api.from(face.saved.thumbnail_url), alt });
  const [first] = face.photos;
  const number = face.chosen ?? first?.seen?.meant;
  const seen = first?.seen?.faces.find((one) => one.number === number);
  return seen ? h("img", { class: "fd-thumb", src: api.from(seen.thumbnail_url), alt }) : first ? thumbnail(first, alt) : "";
}

class Faces extends Part {
  get facts() {
    return [state.saved.map((face) => [face.id, face.name]), state.faces.map((face) => [face.key, face.chosen, face.photos.map((item) => [item.key, item.id, !!item.seen])]), this.error?.code];
  }

  draw() {
    acceptDrops(this, (files) => this.take(files, state.faces.length === 1 && !state.faces[0].saved ? state.faces[0] : null));
    return [
      h("h3", {}, t("faces.title")),
      ...state.faces.map((face) => this.card(face)),
      state.faces.length ? this.another() : h("div", { class: "fd-tiles" }, this.adder(t("faces.add"), null)),
      h("p", { class: "fd-muted" }, t("faces.hint")),
      state.saved.length > 0 && this.library(),
      this.error && errorBox(this.error, () => this.fail(null)),
    ].filter(Boolean);
  }

  adder(label, face) {
    return h(
      "label",
      { class: "fd-tile is-add", title: label },
      icon("plus"),
      picker({ accept: PICTURES, multiple: true, label, onFiles: (files) => this.take(files, face) }),
    );
  }

  library() {
    const put = (saved) => change({ faces: [...state.faces, { key: newKey(), photos: [], chosen: null, saved }], preview: null });
    const rows = state.saved.map((saved) =>
      h(
        "li",
        {},
        h("button", { type: "button", class: "fd-saved", "aria-label": t("saved.use", { name: saved.name }), onclick: () => put(saved) },
          h("img", { class: "fd-thumb", src: api.from(saved.thumbnail_url), alt: "", loading: "lazy" }), h("span", { class: "fd-name" }, saved.name)),
        iconButton("pencil", t("saved.rename", { name: saved.name }), () => this.rename(saved)),
        iconButton("trash", t("saved.delete", { name: saved.name }), () => this.forget(saved)),
      ),
    );
    return h("details", { class: "fd-details", open: this.isLibraryOpen, ontoggle: (event) => (this.isLibraryOpen = event.target.open) }, h("summary", {}, t("saved.title", { count: state.saved.length })), h("ul", { class: "fd-saved-list" }, rows));
  }

  async rename(saved) {
    this.error = await renameFace(saved).then(() => null, (error) => error);
    change({});
  }

  async forget(saved) {
    if (!window.confirm(t("saved.delete.sure", { name: saved.name }))) return;
    this.error = await forgetFace(saved).then(() => null, (error) => error);
    const used = state.faces.find((face) => face.saved?.id === saved.id);
    change(used ? withoutFace(used) : {});
  }

  another() {
    const choose = picker({ accept: PICTURES, multiple: true, label: t("faces.another"), onFiles: (files) => this.take(files, null) });
    return h("label", { class: "fd-button is-small fd-another" }, icon("plus"), t("faces.another"), choose);
  }

  card(face) {
    const name = faceName(face);
    if (face.saved) return this.savedCard(face, name);
    const tiles = face.photos.map((item, index) => this.tile(face, item, index + 1));
    return h(
      "section",
      { class: "fd-face", "aria-label": name },
      h("header", {}, h("h4", {}, name), h("button", { type: "button", class: "fd-button is-small is-quiet", "aria-label": t("saved.save", { name }), onclick: () => this.save(face) }, t("saved.save.short"))),
      h("div", { class: "fd-tiles" }, tiles, this.adder(t("faces.more", { name }), face)),
      ...face.photos.map((item, index) => this.verdictLine(face, item, index + 1)),
    );
  }

  savedCard(face, name) {
    const remove = iconButton("close", t("faces.remove.face", { name }), () => change({ ...withoutFace(face), preview: null }));
    return h("section", { class: "fd-face", "aria-label": name }, h("h4", {}, name), h("div", { class: "fd-tiles" }, h("div", { class: "fd-tile" }, facePicture(face), remove)));
  }

  async save(face) {
    this.error = null;
    try {
      await saveFace(face);
    } catch (error) {
      this.error = error;
    }
    change({});
  }

  tile(face, item, number) {
    const isWrong = verdict(face, item) !== null;
    return h(
      "div",
      { class: `fd-tile${isWrong ? " is-wrong" : ""}` },
      thumbnail(item, t("faces.photo", { number })),
      item.id ? null : h("span", { class: "fd-percent", "data-key": item.key }),
      iconButton("close", t("faces.remove"), () => this.remove(face, item)),
    );
  }

  verdictLine(face, item, number) {
    const said = item.seen?.faces.length ?? 0;
    if (verdict(face, item) === "none") return h("p", { class: "fd-verdict is-wrong", role: "alert" }, icon("alert"), t("faces.none", { number }));
    if (said < 2) return null;
    if (face.photos.length > 1) {
      const isOpen = item.seen.meant == null;
      return h("p", { class: `fd-verdict${isOpen ? " is-wrong" : ""}` }, isOpen && icon("alert"), t(isOpen ? "faces.alone" : "faces.largest", { number, faces: said }));
    }
    return this.chooser(face, item);
  }

  chooser(face, item) {
    const current = face.chosen ?? item.seen.meant;
    const choices = item.seen.faces.map((one) =>
      h(
        "label",
        { class: "fd-which" },
        h("input", {
          type: "radio", name: `which-${face.key}`, checked: one.number === current, "aria-label": t("faces.which.one", { number: one.number }),
          onchange: () => this.choose(face, one.number),
        }),
        h("img", { class: "fd-thumb", src: api.from(one.thumbnail_url), alt: "" }),
        h("span", {}, String(one.number)),
      ),
    );
    return h(
      "fieldset",
      { class: `fd-chooser${current == null ? " is-wrong" : ""}`, "aria-label": t("faces.which", { faces: item.seen.faces.length }) },
      h("legend", {}, t("faces.which", { faces: item.seen.faces.length })),
      h("div", { class: "fd-tiles" }, choices),
    );
  }

  choose(face, number) {
    face.chosen = number;
    change({ faces: [...state.faces], preview: null });
  }

  remove(face, item) {
    drop(item);
    this.without(face, item);
  }

  without(face, item, patch = {}) {
    face.photos = face.photos.filter((other) => other !== item);
    face.chosen = null;
    if (face.photos.length) change({ faces: [...state.faces], preview: null, ...patch });
    else change({ ...withoutFace(face), preview: null, ...patch });
  }

  refresh() {
    const items = state.faces.flatMap((face) => face.photos);
    for (const label of this.querySelectorAll(".fd-percent")) {
      const item = items.find((one) => one.key === label.dataset.key);
      label.textContent = item && item.share < 1 ? `${Math.round(item.share * 100)} %` : "…";
    }
  }

  // Files given together are photos of one person.
  take(files, face) {
    if (!files.length) return;
    this.error = null;
    const known = face ?? { key: newKey(), photos: [], chosen: null };
    const onError = (failed, error) => {
      this.error = error;
      this.without(known, failed);
    };
    known.photos = [...known.photos, ...files.map((file) => send(file, { onDone: look, onError }))];
    known.chosen = null;
    change({ faces: face ? [...state.faces] : [...state.faces, known], preview: null });
  }

  fail(error) {
    this.error = error;
    change({});
  }
}

// What was chosen for a face that is gone has to be chosen again.
function withoutFace(face) {
  const kept = Object.entries(state.choices).filter(([, choice]) => choice !== face.key);
  return {
    faces: state.faces.filter((other) => other !== face),
    choices: Object.fromEntries(kept),
    others: state.others === face.key ? null : state.others,
  };
}

// Whether a photo is any good is said now, not by a job that fails later; without an engine nobody is held up.
async function look(item) {
  const isWanted = () => state.faces.some((face) => face.photos.includes(item));
  item.seen = await whenAnswered(() => api.findFaces(item.id), isWanted).catch(() => null);
  change({ faces: [...state.faces] });
}

customElements.define("fd-faces", Faces);
