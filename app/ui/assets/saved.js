// Faces that the server keeps under a name, to be put on again another day.

import * as api from "./api.js";
import { change, state } from "./state.js";
import { t } from "./text.js";

export async function refreshSaved() {
  const { faces } = await api.savedFaces().catch(() => ({ faces: state.saved }));
  change({ saved: faces });
}

// Asks for a name; why the face may be used is what the consent statement says at that moment.
export async function saveFace(face) {
  const name = window.prompt(t("saved.name"))?.trim();
  if (!name) return;
  await api.saveFace({ name, photos: face.photos.map((item) => item.id), face: face.chosen, consent: state.consent });
  await refreshSaved();
}

// Asks for another name; whoever leaves the old one as it is changes nothing.
export async function renameFace(saved) {
  const name = window.prompt(t("saved.name"), saved.name)?.trim();
  if (!name || name === saved.name) return;
  const renamed = await api.renameFace(saved.id, name);
  change({ faces: state.faces.map((face) => (face.saved?.id === saved.id ? { ...face, saved: renamed } : face)) });
  await refreshSaved();
}

export async function forgetFace(saved) {
  await api.forgetFace(saved.id);
  await refreshSaved();
}
