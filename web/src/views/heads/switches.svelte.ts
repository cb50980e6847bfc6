// Heads that are switched off, and what is known of their worth. It stays while pages and sentences change.

import type { Comparison, Weighed } from "../../lib/experiments";
import { same } from "../../lib/heads";
import { selection } from "../../lib/selection.svelte";
import type { Source } from "../../lib/source";
import type { Head } from "../../lib/types";

export const WAYS = ["silent", "even"] as const;
export type Way = (typeof WAYS)[number];

class Switches {
  get off(): Head[] {
    return selection.off.split(" ").flatMap((name) => {
      const [, block, number] = /^(\w+\.\d+\.\w+)\.(\d+)$/.exec(name) ?? [];
      return block ? [{ block, number: Number(number) }] : [];
    });
  }

  set off(heads: Head[]) {
    selection.off = heads.map(({ block, number }) => `${block}.${number}`).join(" ");
  }

  get way(): Way {
    return selection.even ? "even" : "silent";
  }

  set way(way: Way) {
    selection.even = way === "even";
  }

  has(head: Head): boolean {
    return this.off.some((other) => same(head, other));
  }

  /** Switch heads off, or on again if all of them are off. */
  toggle(...heads: Head[]): void {
    const others = this.off.filter((other) => !heads.some((head) => same(head, other)));
    this.off = heads.every((head) => this.has(head)) ? others : [...others, ...heads];
  }
}

/** What each head is worth, found one after another while something else may be looked at. */
class Sweep {
  model = $state("");
  way = $state<Way>("silent");
  found = $state.raw<Weighed[]>([]);
  running = $state(false);
  problem = $state.raw<unknown>(null);
  private asking: AbortController | null = null;

  async start(source: Source, model: string, way: Way): Promise<void> {
    this.cancel();
    const asking = (this.asking = new AbortController());
    Object.assign(this, { model, way, found: [], problem: null, running: true });
    const add = (weighed: Weighed) => (this.found = [...this.found, weighed]);
    try {
      await source.sweep(model, way, add, asking.signal);
    } catch (problem) {
      if (asking.signal.aborted) return;
      this.problem = problem;
    }
    this.running = false;
  }

  cancel(): void {
    this.asking?.abort();
    this.running = false;
  }

  of(head: Head): Comparison | undefined {
    return this.found.find((weighed) => same(weighed, head));
  }
}

export const switches = new Switches();
export const sweep = new Sweep();
