// Who is on the target, one card a person, and what happens to each of them.

import * as api from "./api.js";
import { choiceFor, choiceForOthers, found, isFace } from "./asked.js";
import { h, icon, Part } from "./dom.js";
import { faceName, facePicture } from "./faces.js";
import { errorBox, progressBar, setProgress } from "./parts.js";
import { whenAnswered } from "./retry.js";
import { change, onChange, state } from "./state.js";
import { figure, joined, listed, t, time } from "./text.js";

// state.people: {mediaId, status: "looking" | "waiting" | "found" | "failed", found, error, controller}
function look() {
  const media = state.target?.media;
  if ((state.people?.mediaId ?? null) === (media?.id ?? null)) return;
  state.people?.controller.abort();
  if (!media) {
    change({ people: null });
    return;
  }
  const people = { mediaId: media.id, status: "looking", found: null, error: null, controller: new AbortController() };
  change({ people });
  find(people);
}

async function find(people) {
  const isWanted = () => state.people === people;
  const tell = (patch) => isWanted() && (Object.assign(people, patch), change({}));
  try {
    const ask = () => api.findPeople(people.mediaId, people.controller.signal);
    const seen = await whenAnswered(ask, isWanted, () => tell({ status: "waiting" }));
    tell({ status: "found", found: seen });
  } catch (error) {
    tell({ status: "failed", error });
  }
}

onChange(look);

class People extends Part {
  get facts() {
    const { mediaId, status, error } = state.people ?? {};
    const faces = state.faces.map((face) => [face.key, faceName(face), face.chosen, face.photos[0]?.id, !!face.photos[0]?.seen]);
    return [mediaId, status, error?.code, faces, state.choices, state.others];
  }

  draw() {
    const people = state.people;
    if (!people) return [h("p", { class: "fd-muted" }, t("people.empty"))];
    if (people.status === "failed") return [errorBox(people.error), this.again(people)];
    if (people.status !== "found") return [this.looking(people)];
    if (!people.found.people.length) return [h("p", { class: "fd-verdict is-wrong", role: "status" }, icon("alert"), t("people.none"))];
    const cards = people.found.people.map((person) => this.card(person));
    return [h("ul", { class: "fd-people" }, cards), this.everyoneElse(), this.advanced(people.found)];
  }

  looking({ status }) {
    const bar = progressBar(t("people.looking"));
    setProgress(bar, null);
    return h("div", { class: "fd-looking" }, h("p", { class: "fd-muted", role: "status" }, t(status === "waiting" ? "people.waiting" : "people.looking")), bar);
  }

  again(people) {
    const retry = () => {
      Object.assign(people, { status: "looking", error: null });
      change({});
      find(people);
    };
    return h("button", { type: "button", class: "fd-button is-small", onclick: retry }, t("people.again"));
  }

  card(person) {
    const choice = choiceFor(person.number);
    const name = t("people.person", { number: person.number });
    return h(
      "li",
      { class: `fd-person${choice === "leave" ? "" : " is-changed"}` },
      h(
        "div",
        { class: "fd-person-pictures" },
        h("span", { class: "fd-portrait" }, h("img", { class: "fd-thumb", src: api.from(person.thumbnail_url), alt: name }), h("b", { "aria-hidden": "true" }, String(person.number))),
        icon("arrow"),
        outcome(choice),
      ),
      h("p", { class: "fd-name" }, name),
      h("p", { class: "fd-muted" }, whenSeen(person)),
      this.select(t("people.choice", { number: person.number }), choice, (chosen) => ({ choices: { ...state.choices, [person.number]: chosen } })),
    );
  }

  everyoneElse() {
    const label = t("people.others");
    const change = (chosen) => ({ others: chosen });
    return h("label", { class: "fd-others" }, h("span", {}, label), this.select(label, choiceForOthers(), change));
  }

  select(label, value, patch) {
    const faces = state.faces.map((face) => h("option", { value: face.key }, faceName(face)));
    const rest = ["leave", "blur"].map((action) => h("option", { value: action }, t(`people.${action}`)));
    const select = h("select", { class: "fd-select", "aria-label": label, onchange: () => change({ ...patch(select.value), preview: null }) }, ...faces, ...rest);
    select.value = value;
    return select;
  }

  advanced(seen) {
    const usual = Number(this.dataset.threshold);
    this.output = h("output", {});
    this.count = h("p", { class: "fd-muted", role: "status" });
    const slider = h("input", {
      type: "range", min: 0, max: 1, step: 0.01, value: state.threshold ?? usual, "aria-label": t("people.threshold"), "aria-describedby": "fd-threshold-info",
      oninput: () => change({ threshold: Number(slider.value) === usual ? null : Number(slider.value) }),
    });
    this.likeness = seen.likeness;
    return h(
      "details",
      { class: "fd-details", open: state.threshold !== null },
      h("summary", {}, t("people.advanced")),
      h("label", { class: "fd-threshold" }, h("span", {}, t("people.threshold")), slider, this.output),
      h("p", { class: "fd-muted", id: "fd-threshold-info" }, t("people.threshold.info")),
      this.count,
    );
  }

  refresh() {
    if (!this.output?.isConnected) return;
    const threshold = state.threshold ?? Number(this.dataset.threshold);
    this.output.textContent = figure(threshold, 2);
    const text = matches(this.likeness, threshold);
    if (this.count.textContent !== text) this.count.textContent = text;
  }
}

function outcome(choice) {
  const face = state.faces.find((one) => one.key === choice);
  if (face) return h("span", { class: "fd-portrait" }, facePicture(face, faceName(face)));
  return h("span", { class: `fd-portrait is-${choice}`, "aria-hidden": "true" }, choice === "leave" ? "–" : icon("blur"));
}

function whenSeen(person) {
  if (state.target?.media?.kind !== "video") return t("people.size", { size: figure(person.size_range_px[1]) });
  const span = person.first_s === person.last_s ? time(person.first_s) : `${time(person.first_s)}–${time(person.last_s)}`;
  return joined([t("people.share", { percent: figure(100 * person.share) }), span]);
}

// Who still counts as one person in all views, and who could be taken for somebody else.
function matches(likeness, threshold) {
  const people = likeness.map((_, at) => at);
  const sure = people.filter((a) => likeness[a][a] >= threshold);
  const pairs = people.flatMap((a) => people.filter((b) => b > a && likeness[a][b] >= threshold).map((b) => t("people.pair", { a: a + 1, b: b + 1 })));
  return [
    t("people.matches", { sure: figure(sure.length), people: figure(people.length) }),
    pairs.length ? t("people.mixed", { list: listed(pairs) }) : t("people.apart"),
  ].join(" ");
}

// Where people are at a moment of the target, for the numbers on the picture: [{number, box in 0..1}].
const NEAR_S = 0.6;

export function placesAt(seconds) {
  const seen = found();
  if (!seen) return [];
  const [width, height] = seen.size_wh;
  return seen.people.flatMap(({ number, places }) => {
    const near = places.filter(({ time_s: at }) => Math.abs(at - seconds) <= NEAR_S);
    if (!near.length) return [];
    const { bbox_xyxy: [x0, y0, x1, y1] } = near.reduce((a, b) => (Math.abs(b.time_s - seconds) < Math.abs(a.time_s - seconds) ? b : a));
    return [{ number, isChanged: isFace(choiceFor(number)), box: [x0 / width, y0 / height, x1 / width, y1 / height] }];
  });
}

customElements.define("fd-people", People);
