// What the server answers when heads are switched off or minimal pairs are put to a model
// (heedful/server/inspector/experiments.py).

import type { Head, Look } from "./types";

/** A score on the sample; over resamples of it the mean, and half the width of the 95 % interval. */
export interface Resampled {
  value: number;
  mean: number;
  interval: number;
}

export interface Comparison {
  name: string;
  baseline: Resampled;
  system: Resampled;
  /** Score of the system minus that of the baseline, on each resample. */
  difference: Resampled;
  p_value: number;
  signature: string;
}

export type Weighed = Head & Comparison;

export interface Choice {
  text: string;
  whole: number;
  without: number;
}

/** One look without some heads: what is said then, and what becomes of the very tokens that were said before. */
export interface Effect {
  answers: Look["answers"];
  pieces: string[];
  whole: number[];
  without: number[];
  choices: Choice[][];
}

type Both = [number, number];
export type Kind = "pair" | "control";

export interface Shift {
  contrast: { line: number; sources: [string, string]; forms: [string, string]; kind: Kind };
  /** log P of form A and of form B, given source A; and given source B. */
  scores: [Both, Both];
  preferences: Both;
  shift: number;
  attention: Both | null;
}

/** A mean with its bootstrap interval; null where there are too few lines for an interval. */
export type Interval = [value: number, low: number | null, high: number | null];

export interface Summary {
  count: number;
  shift: Interval;
  size: Interval;
  sided: number;
}

export interface Probe {
  shifts: Shift[];
  summaries: Partial<Record<Kind, Summary>>;
}

export const change = ({ difference }: Comparison): number => difference.value;

export type Verdict = "controls" | "lines" | "moved" | "still";

/** Whether what the pairs change moves a model by more than what the controls change. */
export function verdict({ pair, control }: Probe["summaries"]): Verdict {
  if (!control || !pair) return "controls";
  const [, low] = pair.size;
  const [, , high] = control.size;
  if (low === null || high === null) return "lines";
  return low > high ? "moved" : "still";
}
