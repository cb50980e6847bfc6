// A toy model and a plain beam search over it, whose logs are what the tests look at.

import type { Search } from "../../lib/types";

const FATES = ["forced", "kept", "cut", "finished", "beaten", "outranked", "stopped", "forbidden"];
const PIECES = ["<eos>", "▁a", "▁b", "c", "d"];
const LIMIT = 6;

/** A fixed number from 0 to 1 for a text. */
function chance(text: string): number {
  let hash = 2166136261;
  for (const sign of text) hash = Math.imul(hash ^ sign.charCodeAt(0), 16777619);
  return ((Math.imul(hash ^ (hash >>> 15), 2246822519) >>> 8) % 9973) / 9973;
}

/** A search and the places of what it found in its log, best first. */
export function logOf(seed: number, beam: number): { search: Search; found: number[] } {
  const search: Search = {
    ...{ beam, n_best: beam, widest: 20, alpha: 0.6, penalty: "gnmt", fates: FATES, threshold: [] },
    ...{ step: [], parent: [], token: [], piece: [], log_prob: [], total: [], score: [], rank: [], end: [], fate: [] },
  };
  let live: { node: number | null; said: string; total: number }[] = [{ node: null, said: `${seed}`, total: 0 }];
  let ended: number[] = [];
  for (let step = 1; live.length && step <= LIMIT; step++) {
    const candidates = live.flatMap(({ node, said, total }) => {
      const weights = PIECES.map((piece) => Math.exp(4 * chance(said + piece)));
      const sum = weights.reduce((a, b) => a + b);
      return PIECES.map((piece, token) => {
        const log_prob = Math.log(weights[token] / sum);
        return { parent: node, said: `${said} ${piece}`, token, piece, log_prob, total: total + log_prob };
      });
    });
    candidates.sort((a, b) => b.total - a.total);
    live = [];
    candidates.forEach(({ parent, said, token, piece, log_prob, total }, rank) => {
      const end = token === 0 || step === LIMIT;
      const fate = end ? (rank < beam ? "finished" : "outranked") : live.length < beam ? "kept" : "cut";
      const node = search.step.length;
      if (fate === "kept") live.push({ node, said, total });
      if (fate === "finished") ended.push(node);
      const values = { step, parent, token, piece, log_prob, total, score: total / ((5 + step) / 6) ** 0.6, rank, end };
      for (const [name, value] of Object.entries({ ...values, fate: FATES.indexOf(fate) })) {
        (search[name as "step"] as unknown[]).push(value);
      }
    });
    search.threshold.push(live.at(-1)?.total ?? null);
  }
  ended = ended.sort((a, b) => search.score[b]! - search.score[a]!);
  for (const node of ended.slice(beam)) search.fate[node] = FATES.indexOf("beaten");
  return { search, found: ended.slice(0, beam) };
}
