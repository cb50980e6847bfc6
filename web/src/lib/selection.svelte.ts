// What is looked at. All of it stands in the address after the #, so that a link shows the same; no server sees it.

export const PAGES = [
  "answer",
  "tokens",
  "attention",
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
  step = $state(1);
  node = $state<number | null>(null);
  settings = $state<Settings>({ reference: "", prefix: "", beam: null, alpha: null });
  line = $state("");
  beside = $state("");
  other = $state("");
  tour = $state<number | null>(null);

  read(hash: string): void {
    const [path, query] = hash.replace(/^#\/?/, "").split("?");
    const values = new URLSearchParams(query);
    this.page = PAGES.find((page) => page === path) ?? "answer";
    this.model = values.get("model") ?? this.model;
    this.look = values.get("look") ?? "";
    this.text = values.get("text") ?? this.text;
    this.target = values.get("target") ?? "";
    this.block = values.get("block") ?? this.block;
    this.head = number(values.get("head")) ?? 0;
    this.query = number(values.get("query"));
    this.key = number(values.get("key"));
    this.words = values.has("words");
    this.step = number(values.get("step")) ?? 1;
    this.node = number(values.get("node"));
    this.settings = {
      reference: values.get("reference") ?? "",
      prefix: values.get("prefix") ?? "",
      beam: number(values.get("beam")),
      alpha: number(values.get("alpha"), /^\d(\.\d{1,6})?$/),
    };
    this.line = values.get("line") ?? "";
    this.beside = values.get("beside") ?? "";
    this.other = values.get("other") ?? "";
    this.tour = number(values.get("tour"));
  }

  hash(): string {
    const values = new URLSearchParams();
    const put = (name: string, value: string | number | null) =>
      value !== "" && value !== null && values.set(name, `${value}`);
    put("model", this.model);
    put("look", this.look);
    put("text", this.text);
    put("target", this.target);
    put("block", this.block);
    put("head", this.head || null);
    put("query", this.query);
    put("key", this.key);
    put("words", this.words ? 1 : null);
    put("step", this.step > 1 ? this.step : null);
    put("node", this.node);
    for (const [name, value] of Object.entries(this.settings)) put(name, value);
    put("line", this.line);
    put("beside", this.beside);
    put("other", this.other);
    put("tour", this.tour);
    return `#/${this.page}?${values}`;
  }
}

function number(text: string | null, form = /^\d{1,6}$/): number | null {
  return text !== null && form.test(text) ? Number(text) : null;
}

export const selection = new Selection();
