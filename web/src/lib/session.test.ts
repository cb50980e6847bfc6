import { beforeEach, expect, test, vi } from "vitest";

vi.stubGlobal("navigator", { language: "en" });
vi.stubGlobal("document", { querySelector: () => null });
vi.stubGlobal("CSS", { escape: String });
const { selection } = await import("./selection.svelte");
const { session } = await import("./session.svelte");

/** Questions that are not answered yet: by their text, or by the look that is opened again. */
const waiting = new Map<string, (look: unknown) => void>();

const MODEL = { name: "toy", modality: "text", stacks: [] };
const look = (text: string) => ({ id: text, model: MODEL, question: { text }, media: null, blocks: [], stream: {} });

vi.stubGlobal("fetch", (path: string, { body, signal }: RequestInit = {}) => {
  if (signal?.aborted) return Promise.reject(new DOMException("", "AbortError"));
  if (path.endsWith("/models")) return Promise.resolve(Response.json({ models: [MODEL], sample: 0, file: null }));
  return new Promise<Response>((done, failed) => {
    signal?.addEventListener("abort", () => failed(new DOMException("", "AbortError")));
    const name = body ? JSON.parse(body as string).text : path.split("/").at(-1);
    waiting.set(name, (found) => done(Response.json(found)));
  });
});

async function answer(name: string): Promise<void> {
  await vi.waitUntil(() => waiting.has(name));
  waiting.get(name)!(look(name));
  waiting.delete(name);
}

async function asks(text: string): Promise<void> {
  selection.text = text;
  const asked = session.ask();
  await answer(text);
  await asked;
}

beforeEach(async () => {
  waiting.clear();
  selection.read("#/answer");
  selection.text = "";
  session.look = null;
  await session.open();
});

test("an answer that comes after one has gone back is not shown", async () => {
  await asks("one");
  selection.text = "two";
  const late = session.ask();
  await vi.waitUntil(() => waiting.has("two"));
  selection.read("#/answer?look=one&text=one");
  const back = session.open();
  await answer("one");
  waiting.get("two")!(look("two"));
  await Promise.all([late, back]);
  expect([session.look!.id, selection.text, selection.look]).toEqual(["one", "one", "one"]);
  expect([session.busy, session.problem]).toEqual([false, null]);
});

test("of two looks that are gone back to at once, the later is shown", async () => {
  const backs = ["one", "two"].map((name) => {
    selection.read(`#/answer?look=${name}&text=${name}`);
    return session.open();
  });
  await answer("two");
  await Promise.all(backs);
  expect(session.look!.id).toBe("two");
});

test("a question stays open until its own answer has come", async () => {
  await asks("one");
  selection.text = "two";
  const first = session.ask();
  selection.text = "three";
  const second = session.ask();
  await first;
  expect(session.busy).toBe(true);
  await answer("three");
  await second;
  expect([session.busy, session.look!.id]).toEqual([false, "three"]);
});
