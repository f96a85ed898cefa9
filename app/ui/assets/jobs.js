// Recent jobs: they go on when the page is closed, and wait here until somebody comes back.

import * as api from "./api.js";
import { h, Part } from "./dom.js";
import { knownMedia } from "./known.js";
import { iconButton, jobShare, jobState, progressBar, setProgress } from "./parts.js";
import { refreshJobs, showJob } from "./poll.js";
import { change, isActive, photos, state } from "./state.js";
import { joined, moment, t, time } from "./text.js";
import { inputs } from "./upload.js";

class Jobs extends Part {
  get facts() {
    return [state.jobId, state.jobs?.map((job) => [job.id, job.state, knownMedia(job.request.target)?.name])];
  }

  draw() {
    if (!state.jobs?.length) return [h("p", { class: "fd-muted" }, state.jobs ? t("jobs.empty") : "\u00a0")];
    return [h("ul", { class: "fd-jobs" }, state.jobs.map((job) => this.row(job)))];
  }

  row(job) {
    const name = knownMedia(job.request.target)?.name ?? job.result?.name ?? "…";
    const isShown = job.id === state.jobId;
    return h(
      "li",
      {},
      h(
        "button",
        {
          type: "button",
          class: `fd-job is-${job.state}`,
          "aria-label": t("job.show", { name }),
          "aria-current": isShown ? "true" : null,
          onclick: () => show(job.id),
        },
        h("img", { class: "fd-thumb", src: api.thumbnail(job.request.target), alt: "", loading: "lazy" }),
        h(
          "span",
          { class: "fd-job-text" },
          h("span", { class: "fd-name" }, name),
          h("span", { class: "fd-muted", "data-job": job.id }),
          isActive(job) && progressBar(t("job.progress", { name })),
        ),
      ),
      !isActive(job) && iconButton("trash", t("job.delete", { name }), () => remove(job, name)),
    );
  }

  refresh() {
    for (const job of state.jobs ?? []) {
      const line = this.querySelector(`[data-job="${CSS.escape(job.id)}"]`);
      if (!line) continue;
      line.textContent = joined([jobState(job), jobTime(job)]);
      if (isActive(job)) setProgress(line.nextElementSibling, jobShare(job));
    }
  }
}

function jobTime(job) {
  const left = job.progress?.remaining_s;
  if (job.state === "running") return left != null && t("job.left", { time: time(left) });
  return moment(job.finished_at ?? job.created_at);
}

function show(id) {
  showJob(id);
  const stage = document.getElementById("fd-center");
  if (stage.getBoundingClientRect().top < 0 || stage.getBoundingClientRect().top > innerHeight / 2) stage.scrollIntoView();
}

// With its uploads, unless the page still holds one of them; those that another job was made with the server keeps.
async function remove(job, name) {
  if (!window.confirm(t("job.delete.sure", { name }))) return;
  const used = inputs(job);
  const isHeld = [state.target, ...photos()].some((item) => used.has(item?.id));
  await api.forgetJob(job.id, !isHeld).catch((error) => error.code === "job.not_found" || change({ startError: error }));
  if (state.jobId === job.id) showJob(null);
  refreshJobs();
}

customElements.define("fd-jobs", Jobs);
