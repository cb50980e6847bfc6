// What a look says for itself.

import type { Look, Option } from "./types";

/** What a model says about its text as a whole; nothing, if it says nothing, or what it was to write was given. */
export function best({ answers: [answer] }: Look): Option | null {
  return answer?.place === null ? (answer.options[0] ?? null) : null;
}

/** The text that was written in a look token by token: what was given, or what the model wrote; null: it writes none. */
export function writtenText(look: Look): string | null {
  const option = best(look);
  return look.question.target ?? (option?.pieces.length ? option.text : null);
}
