// Keeps the list of jobs fresh: often while something runs, seldom otherwise. Asking again and again needs no open
// connection, of which browsers allow six a host, and gets through every proxy.

import * as api from "./api.js";
import { change, isActive, shownJob, state } from "./state.js";

const BUSY_MS = 700;
const IDLE_MS = 10_000;
const LOST_MS = 3_000;
const NO_ENGINE_MS = 2_000;
const WAIT_MS = 5_000;

let timer = null;
let isAsking = false;

export async function refreshJobs() {
  if (isAsking) return;
  isAsking = true;
  clearTimeout(timer);
  const wait = await ask();
  isAsking = false;
  timer = setTimeout(refreshJobs, wait);
}

async function ask() {
  try {
    const { jobs } = await api.jobs();
    const all = await withShown(jobs);
    const isFirst = state.jobs === null;
    const isBusy = all.some(isActive);
    change({ jobs: all, isOnline: true, ...(await engines(all, isBusy)) });
    if (isFirst) reattach();
    if (isBusy) return BUSY_MS;
    return state.devices.length ? IDLE_MS : NO_ENGINE_MS;
  } catch {
    change({ isOnline: false });
    return LOST_MS;
  }
}

// While somebody works, who that is does not change.
async function engines(jobs, isBusy) {
  const stuck = isStuck(jobs);
  if (isBusy && !stuck && state.devices.length) return { problems: [] };
  const { problems, devices } = await api.readiness();
  return { problems: stuck ? problems : [], devices };
}

// Somebody waits, and nobody works.
function isStuck(jobs) {
  const waiting = jobs.filter((job) => job.state === "queued");
  const isOld = (job) => Date.now() - new Date(job.created_at) > WAIT_MS;
  return waiting.some(isOld) && !jobs.some((job) => job.state === "running");
}

// The job on the stage may be older than the list goes back.
async function withShown(jobs) {
  if (!state.jobId || jobs.some((job) => job.id === state.jobId)) return jobs;
  const shown = await api.job(state.jobId).catch((error) => {
    if (error.code === "connection") throw error;
    return null;
  });
  return shown ? [...jobs, shown] : jobs;
}

// The page was closed and opened again: show the job of its address, or else the one that is running.
function reattach() {
  if (shownJob() || state.target) return;
  const running = state.jobs.find(isActive);
  showJob(running ? running.id : null);
}

export function showJob(id) {
  const { pathname, search } = window.location;
  history.replaceState(history.state, "", id ? `#job=${id}` : pathname + search);
  change({ jobId: id });
}

export function start() {
  const asked = new URLSearchParams(window.location.hash.slice(1)).get("job");
  change({ jobId: asked });
  document.addEventListener("visibilitychange", () => document.hidden || refreshJobs());
  window.addEventListener("online", refreshJobs);
  refreshJobs();
}
