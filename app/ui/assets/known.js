// What uploads are called and look like, also those of jobs that an earlier visit of the page has started.

import * as api from "./api.js";
import { change, photos, state } from "./state.js";

const known = new Map();
const asked = new Set();

export function knownMedia(id) {
  const own = [state.target, ...photos()].find((item) => item?.id === id)?.media;
  if (own) known.set(id, own);
  if (!known.has(id) && !asked.has(id)) {
    asked.add(id);
    api
      .media(id)
      .then((media) => {
        known.set(id, media);
        change({});
      })
      .catch((error) => error.code === "connection" && asked.delete(id));
  }
  return known.get(id) ?? null;
}
