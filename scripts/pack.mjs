/**
 * `npm run test:pack` packs every public package as it would be published, installs them into an empty project outside
 * the workspace, and runs the README's first example there on every supported Node, as a module and from CommonJS by
 * `require`; a warning is a failure. Every package is loaded both ways, and the command is run. A last project has core
 * without adapters, and must be told what to install.
 *
 * `npm run test:pack -- 24` runs on some Nodes. They come from the npm registry, as everything else.
 */
import { execFile } from "node:child_process"
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { extract } from "./examples.mjs"
import { explain } from "./run.mjs"
import { packages, root } from "./workspace.mjs"

/** The oldest that is supported, and the newest of each later line. */
const nodes = ["22.19.0", "24", "26"]

const asked = process.argv.slice(2)
const chosen = asked.length === 0 ? nodes : nodes.filter((node) => asked.includes(node.split(".")[0]))
if (chosen.length === 0) {
  console.error(`No Node ${asked.join(", ")}. There are: ${nodes.map((node) => node.split(".")[0]).join(", ")}`)
  process.exit(2)
}

const home = mkdtempSync(join(tmpdir(), "requeue-pack-"))
process.on("exit", () => rmSync(home, { recursive: true, force: true }))
const start = performance.now()
let failures = 0

/** What a program came to; `code` is undefined where it could not be run, or took too long. */
const call = (command, args, cwd) =>
  new Promise((resolve) => {
    const options = { cwd, shell: process.platform === "win32", timeout: 300_000 }
    execFile(command, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : undefined
      resolve({ code, stdout, stderr, error })
    })
  })

/** The same for what everything else depends on. */
const must = async (command, args, cwd) => {
  const result = await call(command, args, cwd)
  if (result.code === 0) return result
  explain(result)
  process.exit(1)
}

/** An empty project with these packages in it. */
const project = async (name, files, ...wanted) => {
  const folder = join(home, name)
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "empty", private: true }))
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  await must("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...wanted], folder)
  return folder
}

/** Prints a line; `wrong` says what is wrong with a result, or answers undefined. */
const verdict = async (what, running, wrong) => {
  const result = await running
  const reason = wrong(result)
  if (reason === undefined) return console.log(`ok      ${what}`)
  failures++
  const { code, error, stderr, stdout } = result
  console.log(`FAILED  ${what}: ${reason} (exit code ${code})\n${stdout}${code === undefined ? error.message : stderr}`)
}

/** It ends well, prints what is expected, and warns of nothing but what is expected. */
const prints =
  (expected, warning = /^$/) =>
  ({ code, stderr, stdout }) => {
    if (code !== 0) return "it ended badly"
    if (!warning.test(stderr)) return "it warned"
    return expected.test(stdout) ? undefined : `it did not print ${expected}`
  }

await must("turbo", ["run", "build", "--filter=./packages/*"], root)
const published = packages.filter(({ manifest }) => manifest.private !== true)
await Promise.all(published.map(({ folder }) => must("pnpm", ["pack", "--pack-destination", home], join(root, folder))))
const tarballs = globSync("*.tgz", { cwd: home }).map((file) => join(home, file))
const effect = `effect@${packages.find(({ manifest }) => manifest.name === "@requeue/core").manifest.peerDependencies.effect}`

const [{ lines }] = extract("README.md", readFileSync(join(root, "README.md"), "utf8"))
const example = lines.join("\n")
const asCommonJs = example.replace(/^import (.+) from (.+)$/gm, "const $1 = require($2)")
const names = published
  .filter(({ manifest }) => manifest.exports["."] !== undefined)
  .map(({ manifest }) => manifest.name)
const files = {
  "hello.mjs": example,
  "hello.cjs": `const main = async () => {\n${asCommonJs}\n}\nmain()`,
  "load.mjs": `${names.map((name) => `await import("${name}")`).join("\n")}\nconsole.log("loaded")`,
  "load.cjs": `${names.map((name) => `require("${name}")`).join("\n")}\nconsole.log("loaded")`
}
const core = tarballs.find((file) => file.includes("requeue-core-"))
const [whole, bare, ...homes] = await Promise.all([
  project("whole", files, ...tarballs, effect),
  project("bare", files, core, effect),
  ...chosen.map((version) => project(`node-${version}`, {}, `node@${version}`))
])
const command = join("node_modules", "@requeue", "cli", "dist", "main.js")

const attempts = /^attempt 1: https:\/\/example\.com\/hook\nattempt 2: .*\nattempt 3: .*\n$/
const handlerFailed = /^.* level=WARN .*message="a handler failed; .*\n$/
const saysWhatToInstall = ({ code, stderr }) =>
  code !== 0 && stderr.includes("Run: npm install @requeue/adapter-memory")
    ? undefined
    : "it does not say what to install"

for (const folder of homes) {
  const node = join(folder, "node_modules", "node", "bin", "node")
  const name = `Node ${(await must(node, ["--version"], folder)).stdout.trim()}`
  const on = (...args) => call(node, args, whole)
  await Promise.all([
    verdict(`${name}: the README's first example`, on("hello.mjs"), prints(attempts, handlerFailed)),
    verdict(`${name}: the same from CommonJS, by require`, on("hello.cjs"), prints(attempts, handlerFailed)),
    verdict(`${name}: import of ${names.length} packages`, on("load.mjs"), prints(/^loaded\n$/)),
    verdict(`${name}: require of ${names.length} packages`, on("load.cjs"), prints(/^loaded\n$/)),
    verdict(`${name}: requeue --version`, on(command, "--version"), prints(/\d/)),
    verdict(`${name}: without the adapter`, call(node, ["hello.mjs"], bare), saysWhatToInstall),
    verdict(`${name}: without the adapter, by require`, call(node, ["hello.cjs"], bare), saysWhatToInstall)
  ])
}

console.log(`${failures} failed, after ${((performance.now() - start) / 1000).toFixed(0)} s`)
process.exitCode = failures === 0 ? 0 : 1
