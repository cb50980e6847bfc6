// How keys move in a grid.

import type { HTMLAttributes } from "svelte/elements";
import { t } from "./language.svelte";

const MOVES: Record<string, [rows: number, columns: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
  PageUp: [-Infinity, 0],
  PageDown: [Infinity, 0],
};

/** By how many rows and columns a key moves, which the browser then leaves alone; null: it is not for the grid. */
export function moved(event: KeyboardEvent): [rows: number, columns: number] | null {
  if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || !(event.key in MOVES)) return null;
  event.preventDefault();
  return MOVES[event.key];
}

/** A place, if there is one in a line of this size. */
export const inside = (at: number | null, size: number): number | null => (at !== null && at < size ? at : null);

/** The place nearest to `at` of those from 0 to `size` - 1. */
export const within = (at: number, size: number): number => Math.max(0, Math.min(size - 1, at));

/** Attributes of an element in which arrow keys and the pointer choose a place. */
export const steered = (
  label: string,
  press: (event: KeyboardEvent) => void,
  point: (event: PointerEvent) => void,
): HTMLAttributes<HTMLElement> => ({
  role: "application",
  "aria-label": `${label}. ${t("matrix.keys")}`,
  tabindex: 0,
  onkeydown: press,
  onpointerdown: point,
});
