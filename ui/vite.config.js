// The built page goes into the Python package. File names are fixed: the server lists them.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  publicDir: "public",
  build: {
    outDir: "../src/spanshot/ui/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]" },
    },
  },
});
