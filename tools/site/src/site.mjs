/**
 * `npm run site` builds the documentation as a site, with the API reference, into tools/site/dist. A dead link fails the
 * build. `--serve` then serves it on 127.0.0.1, `--port` chooses the port, and `--base /requeue/` is for a site below a path.
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { build } from "vitepress"
import { root } from "../../../scripts/workspace.mjs"
import { deadLinks } from "./dead.mjs"
import { serve } from "./serve.mjs"

const { values } = parseArgs({
  options: {
    base: { type: "string", default: "/" },
    port: { type: "string", default: "4173" },
    serve: { type: "boolean", default: false }
  }
})
const home = fileURLToPath(new URL("..", import.meta.url))
const dist = join(home, "dist")

const reference = spawnSync("turbo", ["run", "reference", "--output-logs=errors-only"], {
  cwd: root,
  encoding: "utf8",
  shell: process.platform === "win32"
})
if (reference.status !== 0) {
  console.error(`${reference.stdout ?? ""}${reference.stderr ?? ""}${reference.error?.message ?? ""}`)
  process.exit(1)
}

await build(home, { base: values.base, logLevel: "warn" })
const pages = new Map(
  globSync("**/*.html", { cwd: dist }).map((page) => [page, readFileSync(join(dist, page), "utf8")])
)
cpSync(join(root, "docs", "reference"), join(dist, "reference"), { recursive: true })

const sizes = globSync("**/*", { cwd: dist })
  .map((file) => [file, statSync(join(dist, file))])
  .filter(([, stats]) => stats.isFile())
const files = new Map(sizes.map(([file, { size }]) => [file, size]))
const dead = deadLinks(pages, files, values.base)
for (const line of dead) console.error(line)
const megabytes = [...files.values()].reduce((sum, size) => sum + size, 0) / 1e6
console.log(`site: ${pages.size} pages, ${dead.length} dead links, ${megabytes.toFixed(1)} MB in tools/site/dist`)
if (dead.length > 0) process.exit(1)
if (values.serve) console.log(await serve(dist, files, values.base, Number(values.port)))
