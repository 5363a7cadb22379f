// Record the digest of all sources beside the built page. tests/ui/test_assets.py compares it without Node.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const files = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.js"];
for (const folder of ["public", "src"]) {
  for (const name of readdirSync(folder)) files.push(`${folder}/${name}`);
}
const digest = createHash("sha256");
for (const name of files.sort()) {
  digest.update(`${name}\n`);
  digest.update(readFileSync(name, "utf8").replaceAll("\r\n", "\n"));
}
writeFileSync("../src/spanshot/ui/static/sources.sha256", `${digest.digest("hex")}\n`);
