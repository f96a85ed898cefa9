// One frame as it would come out: asked for with all that the page holds, shown beside what it is now.

import * as api from "./api.js";
import { change, onChange, state } from "./state.js";

// state.preview: {status: "working" | "shown" | "failed", seconds, before, after, faces, error, controller}
let held = null;

// Gradio holds the steps and their options, so it is asked for the whole request first.
export function askPreview(seconds, before) {
  state.preview?.controller.abort();
  const preview = { status: "working", seconds, before, after: null, faces: 0, error: null, controller: new AbortController() };
  change({ preview });
  document.getElementById("fd-ask-preview").click();
}

export async function previewDescribed(reply) {
  const preview = state.preview;
  if (preview?.status !== "working") return;
  const tell = (patch) => state.preview === preview && (Object.assign(preview, patch), change({}));
  if (!reply?.request) {
    tell({ status: "failed", error: reply?.error ?? { code: "internal.unexpected" } });
    return;
  }
  try {
    const made = await api.preview({ ...reply.request, time_s: preview.seconds }, preview.controller.signal);
    tell({ status: "shown", after: URL.createObjectURL(made.picture), faces: made.faces });
  } catch (error) {
    tell({ status: "failed", error });
  }
}

export function closePreview() {
  state.preview?.controller.abort();
  change({ preview: null });
}

// Pictures that nobody sees any more are let go.
onChange(() => {
  const { before = null, after = null } = state.preview ?? {};
  if (held?.after && held.after !== after) URL.revokeObjectURL(held.after);
  if (held?.before?.startsWith("blob:") && held.before !== before) URL.revokeObjectURL(held.before);
  held = { before, after };
});
