// Texts in the browser's language, from the tables that Gradio uses; and figures in the way people read them.

const tables = window.gradio_config?.i18n_translations ?? {};

// Gradio knows Chinese by these two names only; half a page in another language helps nobody.
export const language = /^zh-(CN|TW)$/i.test(navigator.language) ? "zh" : "en";

export function has(key) {
  return key in (tables.en ?? {});
}

export function t(key, values = {}) {
  const text = tables[language]?.[key] ?? tables.en?.[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

export function time(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const tail = String(rest).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

export function figure(value, digits = 0) {
  return new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value);
}

// The time of day, with the date once that was another day.
export function moment(iso) {
  const then = new Date(iso);
  const isToday = then.toDateString() === new Date().toDateString();
  const style = isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  return new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : navigator.language, style).format(then);
}

export function joined(parts) {
  return parts.filter(Boolean).join(" · ");
}

export const listed = (words) => new Intl.ListFormat(language, { type: "conjunction" }).format(words);
