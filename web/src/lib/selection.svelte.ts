// What is looked at. All of it stands in the address after the #, so that a link shows the same; no server sees it.

import type { Head } from "./types";

export const PAGES = [
  "answer",
  "tokens",
  "attention",
  "states",
  "formula",
  "stream",
  "lens",
  "search",
  "heads",
  "bias",
  "compare",
  "training",
  "tour",
] as const;
export type Page = (typeof PAGES)[number];

/** How a translation is searched for; null: as the model's settings say. */
export interface Settings {
  reference: string;
  prefix: string;
  beam: number | null;
  alpha: number | null;
}

// What the address holds beside the page, by its kind; what is empty is left out.
const KEPT = ["model", "text", "block"] as const; // an address that does not say leaves them as they are
const TEXTS = [...KEPT, "look", "target", "line", "beside", "other", "off", "measure"] as const;
const NUMBERS = ["query", "key", "node", "snapshot", "tour"] as const;
const FLAGS = ["words", "lines", "even"] as const;

class Selection {
  page = $state<Page>("answer");
  model = $state("");
  look = $state("");
  text = $state("");
  target = $state("");
  block = $state("");
  head = $state(0);
  query = $state<number | null>(null);
  key = $state<number | null>(null);
  words = $state(false);
  lines = $state(false);
  step = $state(1);
  node = $state<number | null>(null);
  settings = $state<Settings>({ reference: "", prefix: "", beam: null, alpha: null });
  line = $state("");
  beside = $state("");
  other = $state("");
  off = $state("");
  even = $state(false);
  measure = $state("");
  snapshot = $state<number | null>(null);
  tour = $state<number | null>(null);

  read(hash: string): void {
    const [path, query] = hash.replace(/^#\/?/, "").split("?");
    const values = new URLSearchParams(query);
    this.page = PAGES.find((page) => page === path) ?? "answer";
    for (const name of TEXTS) this[name] = values.get(name) ?? (KEPT.some((kept) => kept === name) ? this[name] : "");
    for (const name of NUMBERS) this[name] = number(values.get(name));
    for (const name of FLAGS) this[name] = values.has(name);
    this.head = number(values.get("head")) ?? 0;
    this.step = number(values.get("step")) ?? 1;
    this.settings = {
      reference: values.get("reference") ?? "",
      prefix: values.get("prefix") ?? "",
      beam: number(values.get("beam")),
      alpha: number(values.get("alpha"), /^\d{1,2}(\.\d{1,20})?(e-\d{1,3})?$/),
    };
  }

  /** Look at a head; in another block no token is pointed at yet. */
  choose({ block, number }: Head): void {
    if (block !== this.block) this.query = this.key = null;
    this.block = block;
    this.head = number;
  }

  hash(): string {
    const values = new URLSearchParams();
    const put = (name: string, value: string | number | null) =>
      value !== "" && value !== null && values.set(name, `${value}`);
    for (const name of [...TEXTS, ...NUMBERS]) put(name, this[name]);
    for (const name of FLAGS) put(name, this[name] ? 1 : null);
    put("head", this.head || null);
    put("step", this.step > 1 ? this.step : null);
    for (const [name, value] of Object.entries(this.settings)) put(name, value);
    return `#/${this.page}?${values}`;
  }
}

function number(text: string | null, form = /^\d{1,15}$/): number | null {
  return text !== null && form.test(text) ? Number(text) : null;
}

export const selection = new Selection();
