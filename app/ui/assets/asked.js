// What the page's own elements hold becomes the part of a job's request that Gradio knows nothing of.

import { state } from "./state.js";
import { timing } from "./timing.js";

export const isFace = (choice) => state.faces.some((face) => face.key === choice);
const faceOf = (key) => state.faces.find((face) => face.key === key);

// One face goes to everybody; of several, the first goes to person 1, the second to person 2, and so on.
export function choiceFor(number) {
  const chosen = state.choices[number];
  if (chosen) return chosen;
  return state.faces.length > 1 ? (state.faces[number - 1]?.key ?? "leave") : (state.faces[0]?.key ?? "leave");
}

export function choiceForOthers() {
  return state.others ?? (state.faces.length === 1 ? state.faces[0].key : "leave");
}

export const found = () => (state.people?.mediaId === state.target?.id ? (state.people?.found ?? null) : null);

// A face that can be the request's own sources: photos, and nothing to add.
const isPlain = (face) => !face.saved && (face.chosen == null || face.chosen === face.photos[0]?.seen?.meant);
const ids = (face) => face.photos.map((item) => item.id);

function sourceFace(face) {
  if (face.saved) return { saved: face.saved.id };
  return isPlain(face) ? { photos: ids(face) } : { photos: ids(face), face: face.chosen };
}

function action(choice) {
  return isFace(choice) ? sourceFace(faceOf(choice)) : choice;
}

// Whether the people have to be known before anything can be started.
export function needsPeople() {
  const others = choiceForOthers();
  return isFace(others) && !isPlain(faceOf(others));
}

function faceMap() {
  const others = choiceForOthers();
  const isGiven = isFace(others) && isPlain(faceOf(others));
  const people = found()?.people ?? [];
  const choices = people
    .map(({ number }) => [number, choiceFor(number)])
    // Who gets what everybody else gets needs no mention.
    .filter(([, choice]) => !(choice === others && (isGiven || !isFace(others))))
    .map(([person, choice]) => ({ person, action: action(choice) }));
  const map = { choices, others: isGiven ? "source" : isFace(others) ? "leave" : others };
  if (state.threshold !== null) map.threshold = state.threshold;
  return { sources: isGiven ? ids(faceOf(others)) : [], face_map: map };
}

// As JSON, for the hidden field: ids of uploads and numbers, nothing of the pictures themselves.
export function asked() {
  return JSON.stringify({ target: state.target?.id ?? "", ...faceMap(), timing: timing() });
}
