// Lists of minimal pairs to begin with, by what they are for and their languages.

import type { Family } from "./contrasts.svelte";

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

/** The lists in the languages of a model; all of them, if there are none. */
export function suitable(lists: Record<string, string>, languages: string[]): [string, string][] {
  const wanted = [languages.join("-"), languages[0]];
  const found = Object.entries(lists).filter(([name]) => wanted.includes(name.split(" ").at(-1)!));
  return found.length ? found : Object.entries(lists);
}
