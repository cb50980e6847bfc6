// The list of minimal pairs, and what a model made of it. It stays while other pages are looked at.

import type { Probe, Shift } from "./experiments";
import type { Source } from "./source";
import type { Head, Model } from "./types";

export type Family = "translator" | "generator" | "filler";

/** What a list is made for; null: the model neither writes nor fills gaps. */
export function family({ stacks, task }: Model): Family | null {
  if (stacks.length > 1) return "translator";
  return task === "language_model" ? "generator" : task === "masked_lm" ? "filler" : null;
}

/** Lists to begin with, by what they are for and their languages. */
export const EXAMPLES: Record<Family, Record<string, string>> = {
  translator: {
    "en-de": `A man is reading a book. | A woman is reading a book. | Ein Mann liest ein Buch. | Eine Frau liest ein Buch. | pair
A boy is holding his dog. | A boy is holding her dog. | Ein Junge hält seinen Hund. | Ein Junge hält ihren Hund. | pair
The man is playing with his children. | The man is playing with her children. | Der Mann spielt mit seinen Kindern. | Der Mann spielt mit ihren Kindern. | pair
A doctor is talking to a child. | A nurse is talking to a child. | Ein Arzt spricht mit einem Kind. | Eine Ärztin spricht mit einem Kind. | pair
A man in a red shirt is reading. | A man in a blue shirt is reading. | Ein Mann in einem roten Hemd liest. | Eine Frau in einem roten Hemd liest. | control
A boy is holding his big dog. | A boy is holding his small dog. | Ein Junge hält seinen großen Hund. | Ein Junge hält ihren großen Hund. | control
The old man is playing with his children. | The young man is playing with his children. | Der alte Mann spielt mit seinen Kindern. | Der alte Mann spielt mit ihren Kindern. | control
`,
    "scenes en-de": `His pig was beautiful. | Her pig was beautiful. | Sein Schwein war schön. | Ihr Schwein war schön. | pair
The man sees his dog. | The man sees her dog. | Der Mann sieht seinen Hund. | Der Mann sieht ihren Hund. | pair
Did her horse go into his house? | Did her horse go into her house? | Ging ihr Pferd in sein Haus? | Ging ihr Pferd in ihr Haus? | pair
Today the bear did not hear his white dog. | Today the bear did not hear his black dog. | Heute hörte der Bär seinen weißen Hund nicht. | Heute hörte der Bär ihren weißen Hund nicht. | control
The strong bakers are next to his boat. | The sad bakers are next to his boat. | Die starken Bäcker sind neben seinem Boot. | Die starken Bäcker sind neben ihrem Boot. | control
Is his white horse chasing the dogs? | Is his black horse chasing the dogs? | Jagt sein weißes Pferd die Hunde? | Jagt ihr weißes Pferd die Hunde? | control
`,
    "en-zh": `He is reading a book. | She is reading a book. | 他正在看书。 | 她正在看书。 | pair
The man sees his dog. | The man sees her dog. | 男人看见了他的狗。 | 男人看见了她的狗。 | pair
The doctor is at home because he is tired. | The doctor is at home because she is tired. | 医生在家，因为他累了。 | 医生在家，因为她累了。 | pair
He is reading an old book. | He is reading a new book. | 他正在看一本旧书。 | 她正在看一本旧书。 | control
The old man sees his dog. | The tall man sees his dog. | 老人看见了他的狗。 | 老人看见了她的狗。 | control
The doctor is at home because he is tired. | The doctor is at school because he is tired. | 医生在家，因为他累了。 | 医生在家，因为她累了。 | control
`,
  },
  generator: {
    en: `The king said that|The queen said that| he| she|pair
The boy lost|The girl lost| his| her|pair
The soldier said that|The nurse said that| he| she|pair
The old king said that|The tall king said that| he| she|control
The big boy lost|The small boy lost| his| her|control
The young soldier said that|The tired soldier said that| he| she|control
`,
    zh: `国王说|女王说|他|她|pair
男孩丢了|女孩丢了|他的|她的|pair
士兵说|护士说|他|她|pair
年老的国王说|高个子的国王说|他|她|control
大个子男孩丢了|小个子男孩丢了|他的|她的|control
年轻的士兵说|疲惫的士兵说|他|她|control
`,
  },
  filler: {
    en: `The king said that [MASK] was tired.|The queen said that [MASK] was tired.|he|she|pair
The boy lost [MASK] book.|The girl lost [MASK] book.|his|her|pair
The soldier said that [MASK] was tired.|The nurse said that [MASK] was tired.|he|she|pair
The old king said that [MASK] was tired.|The tall king said that [MASK] was tired.|he|she|control
The boy lost [MASK] big book.|The boy lost [MASK] small book.|his|her|control
The young soldier said that [MASK] was tired.|The old soldier said that [MASK] was tired.|he|she|control
`,
    zh: `国王说[MASK]累了。|女王说[MASK]累了。|他|她|pair
男孩丢了[MASK]的书。|女孩丢了[MASK]的书。|他|她|pair
士兵说[MASK]累了。|护士说[MASK]累了。|他|她|pair
年老的国王说[MASK]累了。|高大的国王说[MASK]累了。|他|她|control
男孩丢了[MASK]的新书。|男孩丢了[MASK]的旧书。|他|她|control
年轻的士兵说[MASK]累了。|年老的士兵说[MASK]累了。|他|她|control
`,
  },
};

/** A text as lines with tabs, which nobody can type into a box: where there are none, | stands for them. */
export const lines = (text: string): string[] =>
  text.split("\n").map((line) => (line.includes("\t") ? line : line.replace(/ \| |\|/g, "\t")));

/** What was found as rows for a spreadsheet; every number as it is. */
export function rows(shifts: Shift[]): (string | number)[][] {
  const title = ["line", "kind", "source A", "source B", "form A", "form B"];
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
  error = $state("");

  async ask(source: Source, model: string): Promise<void> {
    Object.assign(this, { model, found: null, busy: true, error: "" });
    try {
      this.found = await source.probe(model, lines(this.text), this.head);
    } catch (error) {
      this.error = (error as Error).message;
    }
    this.busy = false;
  }
}

export const contrasts = new Contrasts();
