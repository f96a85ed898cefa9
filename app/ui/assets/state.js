// What the page knows, in one place; whoever shows some of it listens for changes.

const bus = new EventTarget();

export const state = {
  target: null, // an item, see media.js
  faces: [], // items
  consent: null,
  hasStep: true,
  isStarting: false,
  isUrged: false, // somebody pressed Start while something was missing
  startError: null,
  jobs: null, // null until the first answer
  jobId: null, // the job on the stage
  isOnline: true,
  problems: [], // codes: why nothing is taken up
};

export function change(patch) {
  // Why the last Start failed says nothing of other files.
  if (("target" in patch || "faces" in patch) && !("startError" in patch)) patch = { ...patch, startError: null };
  Object.assign(state, patch);
  bus.dispatchEvent(new Event("change"));
}

export function onChange(listener) {
  bus.addEventListener("change", listener);
  return () => bus.removeEventListener("change", listener);
}

export function missing() {
  const items = [state.target, ...state.faces];
  return [
    !state.target && "target",
    !state.faces.length && "face",
    items.some((item) => item && !item.id) && "upload",
    !state.hasStep && "step",
    !state.consent && "consent",
  ].filter(Boolean);
}

export const shownJob = () => state.jobs?.find((job) => job.id === state.jobId) ?? null;
export const isActive = (job) => job.state === "queued" || job.state === "running";
