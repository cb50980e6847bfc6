// English and Chinese: `t("key", {name: value})`.

import answer from "../text/answer.json";
import attention from "../text/attention.json";
import bias from "../text/bias.json";
import compare from "../text/compare.json";
import formula from "../text/formula.json";
import frame from "../text/frame.json";
import heads from "../text/heads.json";
import lens from "../text/lens.json";
import search from "../text/search.json";
import stream from "../text/stream.json";
import tokens from "../text/tokens.json";
import tour from "../text/tour.json";
import training from "../text/training.json";

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
  return value.toLocaleString(chosen.language, { maximumFractionDigits: digits, minimumFractionDigits: digits });
}
