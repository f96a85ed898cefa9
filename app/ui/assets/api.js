// The HTTP API, as far as the page uses it. Addresses are relative: the page may live below any path.

const root = new URL("api/v1/", document.baseURI);

export class ApiError extends Error {
  constructor(code, message = "") {
    super(message);
    this.code = code;
  }
}

const JSON_BODY = { "Content-Type": "application/json" };
const lost = () => new ApiError("connection");

export function address(path) {
  return new URL(path, root).href;
}

function refusal(body) {
  return new ApiError(body?.error?.code ?? "internal.unexpected", body?.error?.message);
}

async function ask(path, options = {}) {
  const response = await fetch(address(path), options).catch(() => null);
  if (!response) throw lost();
  const body = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw refusal(body);
  return body;
}

// Gives the promise of what the server says of the file, and a way to call the upload off.
export function upload(file, onProgress) {
  const request = new XMLHttpRequest();
  const form = new FormData();
  form.append("file", file, file.name);
  request.responseType = "json";
  request.upload.onprogress = (event) => onProgress(event.loaded / (event.total || 1));
  const received = new Promise((resolve, reject) => {
    request.onload = () => (request.status < 300 ? resolve(request.response) : reject(refusal(request.response)));
    request.onerror = () => reject(lost());
  });
  request.open("POST", address("media"));
  request.send(form);
  return { received, abort: () => request.abort() };
}

// Addresses that the server gave, which begin at its root, below whatever path the page lives.
export const from = (url) => address(url.replace(/^\/api\/v1\//, ""));

async function askPicture(path, options) {
  const response = await fetch(address(path), options).catch(() => null);
  if (!response) throw lost();
  if (!response.ok) throw refusal(await response.json().catch(() => null));
  return { picture: await response.blob(), faces: Number(response.headers.get("X-Faces-Swapped")) };
}

export const findFaces = (mediaId) => ask(`media/${mediaId}/faces`, { method: "POST" });
export const findPeople = (mediaId, signal) => ask(`media/${mediaId}/people`, { method: "POST", signal });
export const savedFaces = () => ask("faces");
export const saveFace = (face) => ask("faces", { method: "POST", headers: JSON_BODY, body: JSON.stringify(face) });
export const renameFace = (id, name) => ask(`faces/${id}`, { method: "PATCH", headers: JSON_BODY, body: JSON.stringify({ name }) });
export const forgetFace = (id) => ask(`faces/${id}`, { method: "DELETE" });
export const preview = (request, signal) =>
  askPicture("preview", { method: "POST", signal, headers: JSON_BODY, body: JSON.stringify(request) });

export const forget = (mediaId) => ask(`media/${mediaId}`, { method: "DELETE" }).catch(() => null);
export const media = (id) => ask(`media/${id}`);
export const jobs = () => ask("jobs?limit=20");
export const job = (id) => ask(`jobs/${id}`);
export const forgetJob = (id, withUploads) => ask(`jobs/${id}?uploads=${withUploads}`, { method: "DELETE" });
export const cancel = (id) => ask(`jobs/${id}/cancel`, { method: "POST" });

export const thumbnail = (mediaId) => address(`media/${mediaId}/thumbnail`);
export const content = (mediaId) => address(`media/${mediaId}/content`);
export const result = (jobId) => address(`jobs/${jobId}/result`);

// Why a job that waits is not taken up, as codes of the error table; and on what kinds of device the engines that live
// really run.
export async function readiness() {
  const response = await fetch(new URL("readyz", document.baseURI)).catch(() => null);
  const { problems = [], engines = [] } = (await response?.json().catch(() => null)) ?? {};
  const devices = engines.filter((engine) => engine.is_alive && engine.device).map((engine) => engine.device);
  return { problems: problems.map((problem) => problem.code), devices: [...new Set(devices)].sort() };
}
