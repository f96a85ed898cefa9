// What the page knows, in one place; whoever shows some of it listens for changes.

const bus = new EventTarget();

export const state = {
  target: null, // an item, see upload.js
  people: null, // who is on the target, see people.js
  faces: [], // faces to put on, see faces.js
  saved: [], // faces that the server keeps, see saved.js
  choices: {}, // by number of a person: the key of a face, "leave" or "blur"; what nobody chose has a default
  others: null, // the same for everybody else
  threshold: null,
  timing: { start: "", end: "", fps: "" }, // as typed
  preview: null, // one frame as it would come out, see preview.js
  consent: null,
  hasStep: true,
  isStarting: false,
  isUrged: false, // somebody pressed Start while something was missing
  startError: null,
  jobs: null, // null until the first answer
  jobId: null, // the job on the stage
  isOnline: true,
  problems: [], // codes: why nothing is taken up
  devices: [], // kinds, such as "cuda" or "cpu"; nobody is there while it is empty
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

export const photos = () => state.faces.flatMap((face) => face.photos);
export const shownJob = () => state.jobs?.find((job) => job.id === state.jobId) ?? null;
export const isActive = (job) => job.state === "queued" || job.state === "running";
