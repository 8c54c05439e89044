/**
 * `npm run options` writes docs/options.md: every option with its kind, default and meaning, from where the code reads them.
 * `--check` writes nothing, and fails if the page is stale, or a docstring states a wrong default.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { page, problems } from "./options/page.mjs"
import { root } from "./workspace.mjs"

const file = join(root, "docs", "options.md")
const made = await page()
const wrong = problems()
if (process.argv.includes("--check")) {
  if (readFileSync(file, "utf8") !== made) wrong.push("docs/options.md is stale: run npm run options")
} else writeFileSync(file, made)
for (const problem of wrong) console.error(problem)
process.exitCode = wrong.length === 0 ? 0 : 1
