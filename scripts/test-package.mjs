/**
 * `npm run test:package -- NAME` runs the tests of one package, of all levels, without building anything: other packages are
 * tested as their sources. `--watch` reruns them when a file changes, here or there; other arguments go to vitest, for example a
 * part of a file's name.
 */
import { nameOf, tested } from "./results.mjs"
import { explain, run } from "./run.mjs"

const usage = "npm run test:package -- NAME [--watch] [part of a file's name, or options of vitest]"
const [name, ...rest] = process.argv.slice(2)
const found = tested.find((one) => [nameOf(one), one.folder, one.manifest.name].includes(name))

if (found === undefined) {
  const isHelp = name === "--help" || name === "-h"
  const known = tested.map(nameOf).join(", ")
  if (!isHelp && name !== undefined) console.error(`There is no package ${name}.`)
  console[isHelp ? "log" : "error"](`Usage: ${usage}\nNAME is one of ${known}.`)
  process.exitCode = isHelp ? 0 : 2
} else {
  const mode = rest.includes("--watch") ? "watch" : "run"
  const options = rest.filter((option) => option !== "--watch")
  const result = run(["vitest", mode, "--root", found.folder, ...options], { stdio: "inherit" })
  if (result.status !== 0) explain(result)
  process.exitCode = result.status ?? 1
}
