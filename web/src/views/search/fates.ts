// Why a candidate of a search went on or died, and why a reference was not found: in words, with the numbers.

import { n, t } from "../../lib/language.svelte";
import type { Log, Node } from "./search";
import type { Ghost } from "../../lib/types";

/** Why there is no more, or more, of a candidate. */
export function reason(log: Log, node: Node): string {
  const { beam, rank, step, total, threshold } = log.search;
  const worst = log.found.at(-1)?.score ?? 0;
  switch (log.fate(node)) {
    case "kept": {
      const place = log.steps[step[node]].filter((other) => log.goesOn(other)).indexOf(node) + 1;
      return t("search.why.kept", { place, beam });
    }
    case "cut": {
      const least = threshold[step[node] - 1]!;
      return t("search.why.cut", { beam, least: n(least), missing: n(least - total[node]!) });
    }
    case "finished": {
      const place = log.found.findIndex((found) => found.node === node);
      return t("search.why.finished", { place: place + 1, count: log.found.length, score: n(log.found[place].score) });
    }
    case "beaten":
      return t("search.why.beaten", { count: log.found.length, worst: n(worst) });
    case "outranked":
      return t("search.why.outranked", { better: rank[node], beam });
    case "stopped":
      return t("search.why.stopped", { count: log.count("finished", "beaten") });
    case "forced":
      return t("search.why.forced");
    default:
      return t("search.why.forbidden");
  }
}

/** How far the search went with a reference. */
export interface Followed {
  /** Its candidates that were there. */
  path: Node[];
  /** The one with which it was lost, if the search thought of it at all. */
  died: Node | null;
}

export function followed(log: Log, { tokens, lost }: Ghost): Followed {
  const path: Node[] = [];
  const next = (token: number) => {
    const nodes = path.length ? log.children[path.at(-1)!] : log.roots;
    return nodes.find((node) => log.search.token[node] === token);
  };
  for (const token of lost === null ? tokens : tokens.slice(0, lost - 1)) path.push(next(token)!);
  return { path, died: lost === null ? null : (next(tokens[lost - 1]) ?? null) };
}

export type Fault = "none" | "given" | "search" | "model";

/** Whose fault it is that a reference is not what was found. */
export function fault(log: Log, ghost: Ghost, { path }: Followed): Fault {
  if (ghost.search_error) return "search";
  if (ghost.lost === null) return log.leadsTo.get(path.at(-1)!) === 0 ? "none" : "model";
  return ghost.lost <= log.given ? "given" : "model";
}

/** Where a reference was lost, and how. */
export function end(log: Log, { lost, pieces, log_probs }: Ghost, { path, died }: Followed): string {
  if (lost === null) return t("search.ghost.kept", { why: reason(log, path.at(-1)!) });
  const place = { step: lost, piece: pieces[lost - 1], log_prob: n(log_probs[lost - 1]) };
  if (lost <= log.given) return t("search.ghost.given", place);
  if (lost > log.last) return t("search.ghost.late", place);
  if (died === null) return t("search.ghost.unthought", { ...place, count: log.search.beam + 1 });
  return t("search.ghost.died", { ...place, why: reason(log, died) });
}
