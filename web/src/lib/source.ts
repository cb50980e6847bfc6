// Where looks come from: the server that served this page, or the page itself, if it was exported.

import type { Comparison, Effect, Probe, Weighed } from "./experiments";
import { readTrace, type Tensor } from "./safetensors";
import type { Attribution, Development, EmbeddingRow, Head, Look, Model, Question, Snapshot } from "./types";

/** A image or audio: its name, and its content in base64. */
export interface MediaFile {
  name: string;
  file: string;
}

export type Tensors = Map<string, Tensor>;

export interface Source {
  /** Whether anything can be asked that is not there yet. */
  live: boolean;
  /** Sentences on which heads can be weighed. */
  sample: number;
  models: Model[];
  /** A file that is asked about when the page opens. */
  opened(): Promise<MediaFile | null>;
  /** The look that a page shows when it opens, if it brings one. */
  first: Look | null;
  look(model: string, question: Question, signal?: AbortSignal): Promise<Look>;
  again(id: string, signal?: AbortSignal): Promise<Look>;
  /** The weights of all heads, as exact as an image needs. */
  attention(look: Look): Promise<Tensors>;
  /** The heads that `head` can give; null: all. */
  heldHeads: Head[] | null;
  /** What one head computes with, exactly. */
  head(look: Look, head: Head): Promise<Tensors>;
  /** Any tensors, exactly. */
  tensors(look: Look, names: string[]): Promise<Tensors>;
  /** States and gates of recurrent layers, as exact as an image needs. */
  states(look: Look, names: string[]): Promise<Tensors>;
  /** What each part of the model adds to one logit. */
  attribution(look: Look, place: number, token: number): Promise<Attribution>;
  /** The row of the embedding table that a token was found in, and rows like it. */
  neighbours(look: Look, line: string, place: number): Promise<EmbeddingRow>;
  /** How a model was trained; null for one that came without its run. */
  development(model: string): Promise<Development | null>;
  /** What the heads did at each checkpoint of that run, one after another. */
  snapshots(model: string, question: Question, found: (snapshot: Snapshot) => void, signal: AbortSignal): Promise<void>;
  exportUrl(look: Look, head: Head): string;
  /** What each head is worth on the sample, one after another. */
  sweep(model: string, way: string, found: (weighed: Weighed) => void, signal: AbortSignal): Promise<void>;
  /** What some heads are worth on the sample, all of them together. */
  cost(model: string, off: Head[], way: string): Promise<Comparison>;
  /** What becomes of a look without some heads. */
  without(look: Look, off: Head[], way: string, signal: AbortSignal): Promise<Effect>;
  /** Minimal pairs, a line each, with the attention of a head or of all of them in the mean. */
  probe(model: string, lines: string[], head: Head | null): Promise<Probe>;
}

/** The page is a file, and what is asked for was not put into it. */
export class NotHere extends Error {}

const API = "api/v1";
const INSIDE = ["q", "k", "v", "score", "bias", "attn", "z"];

export class Live implements Source {
  live = true;
  first = null;
  heldHeads = null;
  private constructor(
    public models: Model[],
    public sample: number,
    private file: string | null,
  ) {}

  static async open(signal?: AbortSignal): Promise<Live> {
    const { models, sample, file } = await (await ask("models", { signal })).json();
    return new Live(models, sample, file);
  }

  async opened(): Promise<MediaFile | null> {
    return this.file === null ? null : (await ask("file")).json();
  }

  async look(model: string, question: Question, signal?: AbortSignal): Promise<Look> {
    return (await ask("traces", { method: "POST", body: JSON.stringify({ model, ...question }), signal })).json();
  }

  async again(id: string, signal?: AbortSignal): Promise<Look> {
    return (await ask(`traces/${id}`, { signal })).json();
  }

  attention(look: Look): Promise<Tensors> {
    return this.fetch(look, "names=*.attn&stored=sqrt_u8");
  }

  head(look: Look, { block, number }: Head): Promise<Tensors> {
    return this.fetch(look, `names=${INSIDE.map((place) => `${block}.${place}`).join()}&head=${number}`);
  }

  tensors(look: Look, names: string[]): Promise<Tensors> {
    return this.fetch(look, `names=${names.join()}`);
  }

  states(look: Look, names: string[]): Promise<Tensors> {
    return this.tensors(look, names);
  }

  async attribution(look: Look, place: number, token: number): Promise<Attribution> {
    return (await ask(`traces/${look.id}/attribution?place=${place}&token=${token}`)).json();
  }

  exportUrl(look: Look, { block, number }: Head): string {
    return `${API}/traces/${look.id}/export.html?block=${block}&head=${number}`;
  }

  async sweep(model: string, way: string, found: (weighed: Weighed) => void, signal: AbortSignal): Promise<void> {
    const answer = await ask("sweeps", { method: "POST", body: JSON.stringify({ model, way }), signal });
    await events(answer, found);
  }

  async cost(model: string, off: Head[], way: string): Promise<Comparison> {
    return (await ask("costs", { method: "POST", body: JSON.stringify({ model, off, way }) })).json();
  }

  async without(look: Look, off: Head[], way: string, signal: AbortSignal): Promise<Effect> {
    const init = { method: "POST", body: JSON.stringify({ off, way }), signal };
    return (await ask(`traces/${look.id}/without`, init)).json();
  }

  async probe(model: string, lines: string[], head: Head | null): Promise<Probe> {
    return (await ask("probes/bias", { method: "POST", body: JSON.stringify({ model, lines, head }) })).json();
  }

  async neighbours(look: Look, line: string, place: number): Promise<EmbeddingRow> {
    return (await ask(`traces/${look.id}/neighbours?line=${line}&place=${place}`)).json();
  }

  async development(model: string): Promise<Development | null> {
    return (await ask(`models/${encodeURIComponent(model)}/development`)).json();
  }

  async snapshots(
    model: string,
    { text, target, file }: Question,
    found: (snapshot: Snapshot) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const path = `models/${encodeURIComponent(model)}/heads`;
    await events(await ask(path, { method: "POST", body: JSON.stringify({ text, target, file }), signal }), found);
  }

  private async fetch(look: Look, query: string): Promise<Tensors> {
    return readTrace(await (await ask(`traces/${look.id}/tensors?${query}`)).arrayBuffer()).tensors;
  }
}

async function ask(path: string, init?: RequestInit): Promise<Response> {
  const answer = await fetch(`${API}/${path}`, init);
  if (!answer.ok) throw new Error((await refusal(answer)) || `${answer.status} ${answer.statusText}`);
  return answer;
}

/** Why a server refuses a request, in its words; empty if it has none for people. */
async function refusal(answer: Response): Promise<string> {
  const type = answer.headers.get("content-type") ?? "";
  if (type.startsWith("text/plain")) return answer.text();
  return answer.json().then(
    ({ error }) => error,
    () => "",
  );
}

/** What a server says little by little; the last thing may be what went wrong. */
async function events<T>(answer: Response, found: (event: T) => void): Promise<void> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const whole = (waiting + next.value).split("\n\n");
    waiting = whole.pop()!;
    for (const text of whole) {
      const event = JSON.parse(text.slice("data: ".length));
      if ("error" in event) throw new Error(event.error);
      found(event);
    }
  }
}

const missing = (): Promise<never> => Promise.reject(new NotHere());

export class Held implements Source {
  live = false;
  sample = 0;
  models: Model[];
  opened = async () => null;
  look = missing;
  tensors = missing;
  attribution = missing;
  sweep = missing;
  cost = missing;
  without = missing;
  probe = missing;
  neighbours = missing;
  development = missing;
  snapshots = missing;

  private constructor(public first: Look) {
    this.models = [first.model];
  }

  static holds(): boolean {
    return held("overview") !== null;
  }

  static async open(): Promise<Held> {
    const text = new TextDecoder().decode(await unpack("overview"));
    return new Held({ id: "", ...JSON.parse(text) });
  }

  async again(): Promise<Look> {
    return this.first;
  }

  async attention(): Promise<Tensors> {
    return readTrace(await unpack("attention")).tensors;
  }

  async states(): Promise<Tensors> {
    return readTrace(await unpack("states")).tensors;
  }

  get heldHeads(): Head[] {
    return [...document.querySelectorAll<HTMLElement>("script[data-part*=' ']")].map(({ dataset }) => {
      const [block, number] = dataset.part!.split(" ");
      return { block, number: Number(number) };
    });
  }

  async head(_: Look, { block, number }: Head): Promise<Tensors> {
    return readTrace(await unpack(`${block} ${number}`)).tensors;
  }

  exportUrl(): string {
    return "";
  }
}

function held(name: string): string | null {
  return document.querySelector(`script[data-part="${CSS.escape(name)}"]`)?.textContent ?? null;
}

async function unpack(name: string): Promise<ArrayBuffer> {
  const text = held(name);
  if (text === null) throw new NotHere();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
