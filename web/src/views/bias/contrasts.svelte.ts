// The list of minimal pairs, and what a model made of it. It stays while other pages are looked at.

import type { Probe, Shift } from "../../lib/experiments";
import type { Source } from "../../lib/source";
import type { Head, Model } from "../../lib/types";

export type Family = "translator" | "generator" | "filler";

/** What a list is made for; null: the model neither writes nor fills gaps. */
export function family({ stacks, task }: Model): Family | null {
  if (stacks.length > 1) return "translator";
  return task === "language_model" ? "generator" : task === "masked_lm" ? "filler" : null;
}

/** A text as lines with tabs, which nobody can type into a box: where there are none, | stands for them. */
export const lines = (text: string): string[] =>
  text.split("\n").map((line) => (line.includes("\t") ? line : line.replace(/ \| |\|/g, "\t")));

/** What was found as rows for a spreadsheet; every number as it is. */
export function rows(shifts: Shift[]): (string | number)[][] {
  const title = ["line", "kind", "text A", "text B", "form A", "form B"];
  const numbers = ["log P(A|A)", "log P(B|A)", "log P(A|B)", "log P(B|B)", "preference A", "preference B", "shift"];
  const found = shifts.map(({ contrast, scores, preferences, shift, attention }) => [
    ...[contrast.line, contrast.kind, ...contrast.sources, ...contrast.forms],
    ...[...scores.flat(), ...preferences, shift, ...(attention ?? ["", ""])],
  ]);
  return [[...title, ...numbers, "attention A", "attention B"], ...found];
}

class Contrasts {
  text = $state("");
  head = $state.raw<Head | null>(null);
  model = $state("");
  found = $state.raw<Probe | null>(null);
  busy = $state(false);
  problem = $state.raw<unknown>(null);

  async ask(source: Source, model: string): Promise<void> {
    Object.assign(this, { model, found: null, busy: true, problem: null });
    try {
      this.found = await source.probe(model, lines(this.text), this.head);
    } catch (problem) {
      this.problem = problem;
    }
    this.busy = false;
  }
}

export const contrasts = new Contrasts();
