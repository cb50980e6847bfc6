// Asking a server while somebody is still choosing, and saying what went wrong.

import { t } from "./language.svelte";
import { NotHere } from "./source";

/** Ask after some milliseconds of silence, for an effect: what this returns ends the waiting and the asking. */
export function soon(pause: number, ask: (signal: AbortSignal) => void): () => void {
  const asking = new AbortController();
  const waiting = setTimeout(() => ask(asking.signal), pause);
  return () => {
    clearTimeout(waiting);
    asking.abort();
  };
}

/** What went wrong, in words. */
export function told(problem: unknown): string {
  return problem instanceof NotHere ? t("not-here") : (problem as Error).message;
}
