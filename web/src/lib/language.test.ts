import { parse } from "svelte/compiler";
import { expect, test } from "vitest";

const components = import.meta.glob<string>("../**/*.svelte", { query: "?raw", import: "default", eager: true });
const modules = import.meta.glob<string>(["../**/*.ts", "!../**/*.test.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});
const sources = [...Object.values(components), ...Object.values(modules)].join("\n");
const texts = Object.values(
  import.meta.glob<Record<"en" | "zh", Record<string, string>>>("../**/*.json", { import: "default", eager: true }),
);

const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

// Names that are the same in every language.
const NAMES = ["heedful", "English", "中文"];

test("both languages say the same things about the same values", () => {
  expect(texts.length).toBeGreaterThan(10);
  for (const { en, zh } of texts) {
    expect(Object.keys(zh)).toEqual(Object.keys(en));
    for (const key of Object.keys(en)) {
      expect(zh[key].trim(), key).not.toBe("");
      expect(places(zh[key]), key).toEqual(places(en[key]));
    }
  }
});

test("no key is there twice, and none for nothing", () => {
  const keys = texts.flatMap(({ en }) => Object.keys(en));
  expect(new Set(keys).size).toBe(keys.length);
  const composed = [...sources.matchAll(/`((?:[\w-]+\.)+)\$\{/g)].map(([, start]) => start);
  const unused = keys.filter((key) => !sources.includes(`"${key}"`) && !sources.includes(`'${key}'`));
  expect(unused.filter((key) => !composed.some((start) => key.startsWith(start)))).toEqual([]);
});

test("every word of a component comes from the dictionaries", () => {
  const literal = Object.entries(components).flatMap(([file, source]) =>
    words(parse(source, { modern: true }).fragment).map((text) => [file, text]),
  );
  expect(literal.filter(([, text]) => !NAMES.includes(text))).toEqual([]);
});

const ALIKE = ["math", "code", "pre"]; // formulas and commands are the same in every language

/** The pieces of text with a word in them. */
function words(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(words);
  if (typeof node !== "object" || node === null) return [];
  const { type, name, data } = node as { type?: string; name?: string; data?: string };
  if (type === "Text") return /\p{L}{2}/u.test(data!) ? [data!.trim()] : [];
  if (type === "Attribute" || type === "StyleDirective" || ALIKE.includes(name!)) return [];
  return Object.entries(node).flatMap(([key, value]) => (key === "metadata" || key === "parent" ? [] : words(value)));
}
