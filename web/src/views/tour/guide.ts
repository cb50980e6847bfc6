// Walking the tour: a stop sets what is selected, and its number stands in the address.

import { selection } from "../../lib/selection.svelte";
import { session } from "../../lib/session.svelte";
import { stops, type Stop } from "./tour";
import type { Look } from "../../lib/types";

export function stopsOf(look: Look): Stop[] {
  const { live, heldHeads } = session.source!;
  return stops(look, live, heldHeads?.[0] ?? null).filter(({ page }) => session.shows(page));
}

/** Go to a stop, counted from 1. */
export function go(look: Look, number: number): void {
  const { name: _, ...place } = stopsOf(look)[number - 1];
  Object.assign(selection, { query: null, key: null, step: 1 }, place, { tour: number });
}
