// Where the candidates of a beam search stand in an image: a column a step, lines that never cross.

import type { Log, Node } from "./search";

export interface Tree {
  /** The row of each candidate. */
  row: Map<Node, number>;
  /** How many rows each step takes, those that died counted. */
  rows: number[];
}

/**
 * Give every candidate a row, so that an image is hardly higher than the beam is wide. What leads to the best output
 * runs straight along the top; the rest follows in the order of its parents. What died stands under all of its step.
 */
export function arranged(log: Log): Tree {
  const row = new Map<Node, number>();
  const rows = log.steps.map(() => 0);
  const worth = (node: Node) => log.leadsTo.get(node) ?? Infinity;
  const place = (node: Node) => row.set(node, rows[log.search.step[node]]++);
  const follow = (nodes: Node[]) => {
    const living = nodes.filter((node) => log.lives(node));
    for (const node of living.sort((a, b) => worth(a) - worth(b) || a - b)) {
      place(node);
      follow(log.children[node]);
    }
  };
  follow(log.roots);
  for (const nodes of log.steps) nodes.filter((node) => !log.lives(node)).forEach(place);
  return { row, rows };
}

export interface Shown {
  step: number;
  /** Whether what died at other steps is drawn too. */
  dead: boolean;
  chosen: Node | null;
  /** How many candidates an image may have. */
  most: number;
  /** How many rows it may have for what died. */
  deepest: number;
}

/** The candidates that are drawn: if there are more than a page can hold, those that matter most. */
export function drawn(log: Log, { row }: Tree, { step, dead, chosen, most, deepest }: Shown): Node[] {
  const from = (node: Node) => Math.abs(log.search.step[node] - step);
  const weight = (node: Node): number => {
    if (node === chosen) return 0;
    if (log.leadsTo.has(node)) return 1;
    return 2 + from(node) + (log.lives(node) || from(node) === 0 ? 0 : log.last);
  };
  const matters = (at: number, node: Node) => (dead || at === step) && row.get(node)! < deepest;
  const nodes = log.search.step.flatMap((at, node) =>
    log.lives(node) || node === chosen || matters(at, node) ? node : [],
  );
  const some = nodes.length > most ? nodes.sort((a, b) => weight(a) - weight(b) || a - b).slice(0, most) : nodes;
  return some.sort((a, b) => a - b);
}

const WIDE = /[\u1100-\u11ff\u2e80-\ufaff\uff00-\uff60]|[^\u0000-\uffff]/gu;

/** About as wide as a text is, in letters: signs of East Asian scripts are twice as wide. */
export function breadth(text: string): number {
  return [...text].length + (text.match(WIDE)?.length ?? 0);
}

/** Where each column begins, and at the end where the last one ends. */
export function columns(widths: number[], gap: number): number[] {
  const lefts = [0];
  for (const width of widths) lefts.push(lefts.at(-1)! + width + gap);
  return lefts;
}

export function short(text: string, longest: number): string {
  const signs = [...text];
  return signs.length > longest ? `${signs.slice(0, longest - 1).join("")}…` : text;
}

type Point = [number, number];

/** A line from left to right that leaves and arrives level, for the path of an SVG. */
export function curve([fromX, fromY]: Point, [toX, toY]: Point): string {
  const middle = (fromX + toX) / 2;
  return `M${fromX} ${fromY}C${middle} ${fromY} ${middle} ${toY} ${toX} ${toY}`;
}
