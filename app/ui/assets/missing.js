// What has to be there before Start makes sense.

import { choiceFor, choiceForOthers, found, isFace, needsPeople } from "./asked.js";
import { verdict } from "./faces.js";
import { photos, state } from "./state.js";
import { timingErrors } from "./timing.js";

export function missing() {
  const verdicts = new Set(state.faces.flatMap((face) => face.photos.map((item) => verdict(face, item))));
  return [
    !state.target && "target",
    !state.faces.length && "face",
    [state.target, ...photos()].some((item) => item && !item.id) && "upload",
    verdicts.has("none") && "photo",
    verdicts.has("several") && "which",
    needsPeople() && !found() && "people",
    state.faces.length > 0 && isNobodyChanged() && "person",
    timingErrors().length > 0 && "timing",
    !state.hasStep && "step",
    !state.consent && "consent",
  ].filter(Boolean);
}

function isNobodyChanged() {
  const does = (choice) => isFace(choice) || choice === "blur";
  if (does(choiceForOthers())) return false;
  const people = found()?.people;
  // Nobody knows yet who is there; the first face goes to the first person.
  if (!people) return state.faces.length < 2;
  return !people.some(({ number }) => does(choiceFor(number)));
}
