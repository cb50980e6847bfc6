// Walking the tour: a stop sets what is selected, and its number stands in the address.

import type { Attachment } from "svelte/attachments";

import { within } from "../../lib/moves";
import { selection } from "../../lib/selection.svelte";
import { session } from "../../lib/session.svelte";
import { stops, type Stop } from "./tour";
import type { Look } from "../../lib/types";

export function stopsOf(look: Look): Stop[] {
  const { live, heldHeads } = session.source!;
  return stops(look, live, heldHeads?.[0] ?? null).filter(({ page }) => session.shows(page));
}

/** The number of the stop where one stands, from 1. */
export function whereOf(stops: Stop[]): number {
  return within((selection.tour ?? 1) - 1, stops.length) + 1;
}

/** Whether what is selected is what a stop shows. */
export function isAt({ name: _, ...place }: Stop): boolean {
  return Object.entries(place).every(([key, value]) => selection[key as keyof typeof place] === value);
}

const SETTLED = 2000; // milliseconds after which nothing more of a page is expected to come

/** For a part of a page: it comes into sight when the tour stops there, and stays while the rest of the page comes. */
export function stopsHere(look: Look, name: string): Attachment<HTMLElement> {
  return (part) => {
    const stops = stopsOf(look);
    if (selection.tour === null || stops[whereOf(stops) - 1].name !== name) return;
    const growing = new ResizeObserver(() => part.scrollIntoView({ block: "center" }));
    growing.observe(document.body);
    const settling = setTimeout(() => growing.disconnect(), SETTLED);
    return () => {
      clearTimeout(settling);
      growing.disconnect();
    };
  };
}

/** Go to a stop, counted from 1. */
export function go(look: Look, number: number): void {
  const { name: _, ...place } = stopsOf(look)[number - 1];
  Object.assign(selection, { query: null, key: null, step: 1 }, place, { tour: number });
}
