// What is open: where looks come from, the look itself, and the tensors that were fetched for it.

import { selection, type Page } from "./selection.svelte";
import { mediaLine } from "./media";
import { Held, Live, type MediaFile, type Source, type Tensors } from "./source";
import type { FileKind, Head, Look, Model, Question } from "./types";
import { statesIn } from "../views/states/layers";

/** Views that ask a model what no file can know. */
const ASKING: Page[] = ["heads", "bias", "compare", "training"];
/** Views that ask about a text of words. */
const OF_TEXT: Page[] = ["bias", "compare", "tour"];
/** Views of the stacks of a Transformer, which other architectures do not have. */
const OF_STACKS: Page[] = ["formula", "stream", "heads", "bias", "compare", "tour"];

class Session {
  source = $state.raw<Source | null>(null);
  look = $state.raw<Look | null>(null);
  busy = $state(false);
  problem = $state.raw<unknown>(null);
  /** The model that an address names although it is not here; empty until there is one, and when another is chosen. */
  absent = $state("");
  /** The image or audio that is asked about; a page that is loaded again has it no more. */
  file = $state.raw<MediaFile | null>(null);
  private asking: AbortController | null = null;
  private fetched = new Map<string, Promise<Tensors>>();

  get model(): Model | null {
    const { source } = this;
    return source?.models.find(({ name }) => name === selection.model) ?? source?.models[0] ?? null;
  }

  /** Let the first model stand in for one that is not here, and note its name. */
  settle(): void {
    const name = this.model!.name;
    if (selection.model && selection.model !== name) this.absent = selection.model;
    selection.model = name;
  }

  /** Somebody has chosen a model. */
  choose(): Promise<void> {
    this.absent = "";
    return this.ask();
  }

  /** Whether a view has anything to show of this look. */
  shows(page: Page): boolean {
    const { look } = this;
    if (!look) return page === "answer";
    if (ASKING.includes(page) && !this.source!.live) return false;
    if (OF_STACKS.includes(page) && look.model.stacks.length === 0) return false;
    if (OF_TEXT.includes(page) && look.media) return false;
    if (page === "tokens") return this.tokenLines(look).length > 0;
    if (page === "attention") return look.blocks.length > 0;
    if (page === "states") return statesIn(Object.keys(look.tensors)).length > 0;
    if (page === "lens" || page === "bias") return look.lens !== null;
    if (page === "search") return look.search !== null;
    return true;
  }

  /** The lines of a look that are cut into tokens and embedded. */
  tokenLines(look: Look): string[] {
    return Object.keys(look.lines).filter((line) => `${line}.tok` in look.tensors && line !== mediaLine(look));
  }

  /** What the model reads from files; null: it reads text. */
  get fileKind(): FileKind | null {
    const kind = this.model?.modality ?? "text";
    return kind === "text" ? null : kind;
  }

  /** Somebody has chosen a file: it is sent with each question, and kept nowhere. */
  take(file: MediaFile): Promise<void> {
    this.file = file;
    return this.ask();
  }

  /** A file that cannot even be sent. */
  refuse(problem: Error): void {
    this.problem = problem;
  }

  async open(): Promise<void> {
    const isNewest = await this.attempt(async (signal) => {
      this.source = Held.holds() ? await Held.open() : await Live.open(signal);
      this.settle();
      if (this.source.first) this.restore(this.source.first);
      else if (selection.look) this.restore(await this.source.again(selection.look, signal));
    });
    this.file ??= (await this.source?.opened().catch(() => null)) ?? null;
    if (isNewest && this.source?.live && !this.look && (selection.text || this.file)) {
      this.problem = null;
      await this.ask();
    }
  }

  /** Ask the model about what is written now; a question that was still open is given up. */
  async ask(more: Pick<Question, "off" | "way"> = {}): Promise<void> {
    const { target, settings } = selection;
    const { name: text, file } = this.asked();
    if (!text.trim()) {
      this.asking?.abort();
      this.busy = false;
      if (this.look && this.look.model.name !== this.model?.name) [this.look, selection.look] = [null, ""];
      return;
    }
    this.settle();
    if (this.look && text !== this.look.question.text) settings.reference = settings.prefix = "";
    const question = {
      text,
      file,
      target: target.trim() ? target : null,
      ...settings,
      reference: settings.reference || null,
      ...more,
    };
    await this.attempt(async (signal) => {
      this.show(await this.source!.look(this.model!.name, question, signal));
    });
  }

  /** What is asked about: the text, or the name and the content of the file. */
  private asked(): { name: string; file: string | null } {
    if (!this.fileKind) return { name: selection.text, file: null };
    return this.file ?? { name: "", file: null };
  }

  attention(): Promise<Tensors> {
    return this.once("attention", () => this.source!.attention(this.look!));
  }

  head(head: Head): Promise<Tensors> {
    return this.once(`${head.block} ${head.number}`, () => this.source!.head(this.look!, head));
  }

  /** States and gates of all recurrent layers. */
  states(): Promise<Tensors> {
    return this.once("states", () => this.source!.states(this.look!, statesIn(Object.keys(this.look!.tensors))));
  }

  tensors(names: string[]): Promise<Tensors> {
    return this.once(names.join(), () => this.source!.tensors(this.look!, names));
  }

  private once(name: string, fetch: () => Promise<Tensors>): Promise<Tensors> {
    const found = this.fetched.get(name) ?? fetch();
    this.fetched.set(name, found);
    found.catch(() => this.fetched.delete(name));
    return found;
  }

  private show(look: Look): void {
    this.fetched.clear();
    this.look = look;
    if (selection.look !== look.id) selection.node = null;
    selection.look = look.id;
    selection.model = look.model.name;
    const last = look.blocks.at(-1);
    if (last && !look.blocks.some(({ name }) => name === selection.block) && !(selection.block in look.stream)) {
      const first = this.source!.heldHeads?.[0] ?? { block: last.name, number: 0 };
      selection.block = first.block;
      selection.head = first.number;
    }
  }

  /** Show a look together with its question; what is being written stays as it is when an answer comes. */
  private restore(look: Look): void {
    this.show(look);
    const { text, target, reference, prefix, beam, alpha } = look.question;
    if (!look.media) selection.text = text;
    selection.target = target ?? "";
    selection.settings = {
      reference: reference ?? "",
      prefix: prefix ?? "",
      beam: beam ?? null,
      alpha: alpha ?? null,
    };
  }

  /** Ask for something in place of whatever was asked for before; false if something else is asked for meanwhile. */
  private async attempt(work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    [this.busy, this.problem] = [true, null];
    try {
      await work(signal);
    } catch (problem) {
      if (!signal.aborted) this.problem = problem;
    }
    if (!signal.aborted) this.busy = false;
    return !signal.aborted;
  }
}

export const session = new Session();
