// Asking a server while somebody is still choosing.

/** Ask after some milliseconds of silence, for an effect: what this returns ends the waiting and the asking. */
export function soon(pause: number, ask: (signal: AbortSignal) => void): () => void {
  const asking = new AbortController();
  const waiting = setTimeout(() => ask(asking.signal), pause);
  return () => {
    clearTimeout(waiting);
    asking.abort();
  };
}
