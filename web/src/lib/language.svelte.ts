// English and Chinese: `t("key", {name: value})`.

import answer from "../views/answer/answer.json";
import attention from "../views/attention/attention.json";
import bias from "../views/bias/bias.json";
import compare from "../views/compare/compare.json";
import formula from "../views/formula/formula.json";
import frame from "./frame.json";
import heads from "../views/heads/heads.json";
import lens from "../views/lens/lens.json";
import search from "../views/search/search.json";
import states from "../views/states/states.json";
import stream from "../views/stream/stream.json";
import tokens from "../views/tokens/tokens.json";
import tour from "../views/tour/tour.json";
import training from "../views/training/training.json";

const AREAS = [
  answer,
  attention,
  bias,
  compare,
  formula,
  frame,
  heads,
  lens,
  search,
  states,
  stream,
  tokens,
  tour,
  training,
] as const;

type Area = (typeof AREAS)[number];
type KeysOf<T> = T extends { en: infer E } ? keyof E : never;
export type Key = KeysOf<Area> & string;
export type Language = "en" | "zh";

const TEXTS: Record<Language, Record<string, string>> = {
  en: Object.assign({}, ...AREAS.map((area) => area.en)),
  zh: Object.assign({}, ...AREAS.map((area) => area.zh)),
};
const KEPT = "heedful.language";

class Chosen {
  language = $state<Language>(preferred());

  choose(language: Language): void {
    this.language = language;
    try {
      localStorage.setItem(KEPT, language);
    } catch {
      // a page opened from a file may have no storage: the choice lasts as long as the page
    }
  }
}

function preferred(): Language {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(KEPT);
  } catch {
    // as above
  }
  return kept === "zh" || (kept === null && navigator.language.startsWith("zh")) ? "zh" : "en";
}

export const chosen = new Chosen();

export function t(key: Key, values: Record<string, string | number> = {}): string {
  return TEXTS[chosen.language][key].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
}

/** A number as people of the chosen language write it. */
export function n(value: number, digits = 3): string {
  const form = { maximumFractionDigits: digits, minimumFractionDigits: digits };
  const text = value.toLocaleString(chosen.language, form);
  return text.replace("-", /[1-9∞]/.test(text) ? "−" : ""); // what is rounded to 0 has no sign
}

/** A change: its sign is always written. */
export function delta(value: number, digits = 3): string {
  return (value > 0 ? "+" : "") + n(value, digits);
}
