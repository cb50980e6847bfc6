// A beam search as its log tells it, and the same search once more from nothing but the log.

import { spelled } from "../../lib/spelling";
import type { Option, Search } from "../../lib/types";

/** The place of a candidate in the columns of the log. */
export type Node = number;

/** Something that the search found: its last candidate, and its score. */
export interface Found {
  node: Node;
  score: number;
}

const GOES_ON = ["forced", "kept", "stopped"];
const ENDED = ["finished", "beaten"];
const PENALTIES: Record<string, (length: number, alpha: number) => number> = {
  gnmt: (length, alpha) => ((5 + length) / 6) ** alpha,
  average: (length, alpha) => length ** alpha,
  average_text: (length, alpha) => Math.max(1, length - 1) ** alpha,
};

export class Log {
  /** The candidates of each step, best first; nothing at 0. */
  readonly steps: Node[][] = [[]];
  /** What each candidate was continued by, best first. */
  readonly children: Node[][];
  /** What begins. */
  readonly roots: Node[];
  /** What was found, best first, as replayed from the log. */
  readonly found: Found[];
  /** Of each candidate that leads to something found, the place of the best of it, from 0. */
  readonly leadsTo = new Map<Node, number>();
  /** How many candidates were given, not searched for. */
  readonly given: number;

  constructor(readonly search: Search) {
    this.children = search.step.map(() => []);
    search.step.forEach((step, node) => {
      (this.steps[step] ??= []).push(node);
      const parent = search.parent[node];
      if (parent !== null) this.children[parent].push(node);
    });
    this.roots = this.steps[1] ?? [];
    this.given = this.count("forced");
    this.found = replay(search, this.steps);
    this.found.forEach(({ node }, place) => {
      for (const passed of this.path(node)) if (!this.leadsTo.has(passed)) this.leadsTo.set(passed, place);
    });
  }

  get last(): number {
    return this.steps.length - 1;
  }

  count(...fates: string[]): number {
    return this.search.fate.filter((fate) => fates.includes(this.search.fates[fate])).length;
  }

  fate(node: Node): string {
    return this.search.fates[this.search.fate[node]];
  }

  goesOn(node: Node): boolean {
    return GOES_ON.includes(this.fate(node));
  }

  /** Whether it went on or is an output: it did not die at its step. */
  lives(node: Node): boolean {
    return this.goesOn(node) || ENDED.includes(this.fate(node));
  }

  /** A candidate and what it continues, the first token first. */
  path(node: Node | null): Node[] {
    return path(this.search, node);
  }

  /** What is said up to a candidate. */
  text(node: Node | null): string {
    const said = this.path(node).filter((at) => this.search.piece[at] !== "<eos>");
    return spelled(said.map((at) => this.search.piece[at]));
  }

  /** The continuation that leads furthest: to the best output, or else the likeliest. */
  best(nodes: Node[]): Node | undefined {
    const worth = (node: Node) => this.leadsTo.get(node) ?? Infinity;
    return nodes.reduce<Node | undefined>((a, b) => (a === undefined || worth(b) < worth(a) ? b : a), undefined);
  }

  /** Where the best continuations of a candidate end. */
  furthest(node: Node): Node {
    const next = this.best(this.children[node]);
    return next === undefined ? node : this.furthest(next);
  }
}

function path({ parent }: Search, node: Node | null): Node[] {
  const nodes = [];
  for (let at = node; at !== null; at = parent[at]) nodes.push(at);
  return nodes.reverse();
}

/**
 * Search again: rank what continues the beam by log-probability; what ends among the first is found, the best of the
 * others go on. Uses only who continues whom, with what log-probability, and what ends.
 */
function replay(search: Search, steps: Node[][]): Found[] {
  const { beam, n_best, parent, log_prob, end } = search;
  const total = new Map<Node | null, number>([[null, 0]]);
  let live = new Set<Node | null>([null]);
  const found: Found[] = [];
  for (const nodes of steps.slice(1)) {
    const candidates = nodes.filter((node) => live.has(parent[node]) && log_prob[node] !== null);
    for (const node of candidates) total.set(node, total.get(parent[node])! + log_prob[node]!);
    candidates.sort((a, b) => total.get(b)! - total.get(a)!);
    const ending = candidates.slice(0, beam).filter((node) => end[node]);
    found.push(...ending.map((node) => ({ node, score: scored(search, node) })));
    live = new Set(candidates.filter((node) => !end[node]).slice(0, beam));
  }
  return found.sort((a, b) => b.score - a.score).slice(0, n_best);
}

/** Of an output: the log-probabilities of its tokens together, divided by the length penalty. */
function scored(search: Search, node: Node): number {
  const tokens = path(search, node);
  const total = tokens.reduce((sum, at) => sum + search.log_prob[at]!, 0);
  return total / PENALTIES[search.penalty](tokens.length, search.alpha);
}

/** By how much the scores differ from those that the model's own search gave; null: it found other outputs. */
export function difference(log: Log, said: Option[]): number | null {
  const pieces = (node: Node) => log.path(node).map((at) => log.search.piece[at]);
  const same = ({ node }: Found, place: number) => `${pieces(node)}` === `${said[place].pieces}`;
  if (log.found.length !== said.length || !log.found.every(same)) return null;
  return Math.max(0, ...log.found.map(({ score }, place) => Math.abs(score - said[place].score!)));
}
