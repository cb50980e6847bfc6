import { svelte } from "@sveltejs/vite-plugin-svelte";
import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";

// One file, for the server and for export alike: nothing else is ever requested.
export default defineConfig({
  plugins: [svelte(), viteSingleFile({ removeViteModuleLoader: true })],
  build: { outDir: "../src/heedful/inspector/page", emptyOutDir: true, target: "es2022" },
  server: { proxy: { "/api": "http://127.0.0.1:8642" } },
  test: { environment: "node", include: ["src/**/*.test.ts"] },
});
