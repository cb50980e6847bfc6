// What /api/v1 sends (heedful/inspector/overview.py).

/** What a model may read from files. */
export type FileKind = "image" | "audio" | "video";

export interface Model {
  name: string;
  task: string;
  command: string;
  /** What it reads. */
  modality: "text" | FileKind;
  /** What it reads and what it writes, such as "en" and "de"; empty where nobody said. */
  languages: [string, string];
  /** Whether the run that trained it is there; a file does not say. */
  trained?: boolean;
  stacks: { name: "enc" | "dec"; sequence: "src" | "tgt"; layers: number }[];
  heads: number;
  d_model: number;
  d_k: number;
  d_ff: number;
  norm: string;
  positions: string;
  parameters: number;
  beam: number;
  alpha: number;
}

export interface Pieces {
  ids: number[];
  labels: string[];
  words: string[];
  word_of_piece: number[];
}

export interface Head {
  block: string;
  number: number;
}

/** An image at the size at which it is read, cut into patches. */
export interface ImageMedia {
  kind: "image";
  height: number;
  width: number;
  rows: number;
  columns: number;
  /** Positions of the encoder before the patches: 1 for a class token. */
  before: number;
  /** A PNG file in base64. */
  png: string;
}

/** The log-mel spectrum of audio. */
export interface AudioMedia {
  kind: "audio";
  frames: number;
  mels: number;
  /** Seconds from one frame to the next. */
  hop: number;
  /** Frames for each position of the encoder. */
  stride: number;
  /** Middle of each band in Hz, lowest first. */
  bands: number[];
  /** A byte a value in base64, frame by frame. */
  spectrum: string;
}

export type Media = ImageMedia | AudioMedia;

/** Properties of a image or audio that is shown with weights of its patches or frames. */
export interface Weighed<M extends Media> {
  media: M;
  /** A number for each position of the encoder; null: the image or the spectrum alone. */
  weights?: Float32Array | null;
  /** The largest number: the darkest colour, or the top of the curve. */
  most?: number;
  /** A position that is read out, and one that looks at the others. */
  marked?: number | null;
  from?: number | null;
  choose?: (position: number | null) => void;
  label: string;
}

export interface Question {
  /** The text; of a image or audio the name of its file. */
  text: string;
  /** The content of a image or audio in base64. */
  file?: string | null;
  target?: string | null;
  reference?: string | null;
  prefix?: string;
  beam?: number | null;
  alpha?: number | null;
  off?: Head[];
  way?: string;
}

export interface Option {
  text: string;
  probability: number | null;
  score: number | null;
  pieces: string[];
  log_probs: number[];
  complete: boolean;
}

/** A line of tokens: "src.read", "tgt.read" or "tgt.said". */
export type LineName = string;

export interface Block {
  name: string;
  heads: number;
  queries: LineName;
  keys: LineName;
}

export interface Lens {
  tokens: number[][][];
  log_probs: number[][][];
  entropy: number[][];
  rank: number[][];
  last_log_probs: number[][];
  pieces: Record<string, string>;
}

/** The residual stream at one sublayer, a number a token (heedful/inspector/overview.py, `stream`). */
export type Flow = Record<"before" | "added" | "after" | "normalised" | "mean" | "deviation", number[]>;

/** One summand of a logit (heedful/inspector/measures/logits.py). */
export interface Part {
  source: string;
  kind: "token" | "position" | "head" | "hidden" | "bias" | "norm";
  value: number;
  head: number | null;
}

export interface Attribution {
  place: number;
  token: number;
  logit: number;
  parts: Part[];
  difference: number;
}

export interface Search {
  beam: number;
  /** How many hypotheses are kept at most. */
  n_best: number;
  /** The largest beam that may be asked for. */
  widest: number;
  alpha: number;
  penalty: string;
  fates: string[];
  step: number[];
  parent: (number | null)[];
  token: number[];
  piece: string[];
  log_prob: (number | null)[];
  total: (number | null)[];
  score: (number | null)[];
  rank: number[];
  end: boolean[];
  fate: number[];
  threshold: (number | null)[];
}

export interface Ghost {
  tokens: number[];
  pieces: string[];
  log_probs: number[];
  hypothesis: { tokens: number[]; score: number; token_scores: number[] };
  lost: number | null;
  search_error: boolean;
}

export interface Look {
  id: string;
  model: Model;
  question: Question;
  /** What a model of images or audio reads; null for a text. */
  media: Media | null;
  lines: Record<string, { read: Pieces; written: Pieces | null }>;
  blocks: Block[];
  tensors: Record<string, { axes: [string, LineName | null][]; shape: number[] }>;
  heads: Record<string, Record<string, number[]>>;
  stream: Record<string, Flow>;
  answers: { options: Option[]; place: number | null }[];
  lens: Lens | null;
  search: Search | null;
  ghost: Ghost | null;
  checks: Record<string, number>;
  /** Words of the question that the vocabulary lacks: the model sees <unk> in their place. */
  unknown: string[];
}

export interface EmbeddingRow {
  values: number[];
  norm: number;
  scale: number;
  segments: boolean;
  neighbours: { token: number; piece: string; cosine: number }[];
}

export interface Development {
  /** Updates whose checkpoints are kept. */
  steps: number[];
  best: number | null;
  /** By what was logged: updates and values. */
  curves: Record<string, [number, number][]>;
}

export interface Snapshot {
  step: number;
  /** By block and measure: a number a head. */
  heads: Record<string, Record<string, number[]>>;
}

export function pieces(look: Look, line: LineName): Pieces {
  const [sequence, side] = line.split(".");
  const { read, written } = look.lines[sequence];
  return side === "said" && written ? ahead(written) : read;
}

/** A place named by what is written there next: the model has read only what comes before. */
function ahead(line: Pieces): Pieces {
  const next = (names: string[]) => names.map((name) => `→ ${name}`);
  return { ...line, labels: next(line.labels), words: next(line.words) };
}
