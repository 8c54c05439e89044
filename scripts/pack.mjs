/**
 * `npm run test:pack` packs every public package as it would be published, installs them into an empty project outside the
 * workspace, and runs the README's first example there on every supported Node, as a module and from CommonJS by `require`; a
 * warning is a failure. Every package is loaded both ways, and the command is run. A project that has core without adapters must
 * be told what to install. The modules of an import, and the size of the console, are counted. Mistakes and unusual setups of
 * users give the right result or message: config files in CommonJS packages, bundles, `await using`. A producer and a consumer
 * share the queues of a third package. Jest runs the test of docs/testing.md. OpenTelemetry is installed as its README says, in
 * each of its versions. The service of docs/production.md is built, tested and run. A last project uses a third-party adapter in
 * every way.
 *
 * `npm run test:pack -- 24` runs on some Nodes. They come from the npm registry, like all packages.
 */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { extract } from "./examples.mjs"
import { hovers } from "./hovers/hovers.mjs"
import { jest } from "./pack/jest.mjs"
import { loading, program } from "./pack/loading.mjs"
import { bundled, misuse } from "./pack/misuse.mjs"
import { openTelemetry } from "./pack/openTelemetry.mjs"
import { production } from "./pack/production.mjs"
import { call, home, must, project } from "./pack/project.mjs"
import { shared } from "./pack/shared.mjs"
import { size } from "./pack/size.mjs"
import { thirdParty } from "./pack/thirdParty.mjs"
import { failed, prints, refuses, verdict } from "./pack/verdict.mjs"
import { packages, root } from "./workspace.mjs"

/** The oldest supported one, and the newest of each later line. */
const nodes = ["22.19.0", "24", "26"]

const asked = process.argv.slice(2)
const chosen = asked.length === 0 ? nodes : nodes.filter((node) => asked.includes(node.split(".")[0]))
if (chosen.length === 0) {
  console.error(`No Node ${asked.join(", ")}. There are: ${nodes.map((node) => node.split(".")[0]).join(", ")}`)
  process.exit(2)
}

const start = performance.now()
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
  "loading.mjs": program,
  "load.cjs": `${names.map((name) => `require("${name}")`).join("\n")}\nconsole.log("loaded")`
}
const tarballOf = (one) => tarballs.find((file) => file.includes(`requeue-${one}-`))
const core = tarballOf("core")
const [whole, bare, old, ...homes] = await Promise.all([
  project("whole", files, ...tarballs, effect),
  project("bare", files, core, effect),
  project("node-20", {}, "node@20"),
  ...chosen.map((version) => project(`node-${version}`, {}, `node@${version}`))
])
const command = join("node_modules", "@requeue", "cli", "dist", "main.js")

const attempts = /^attempt 1: https:\/\/example\.com\/hook\nattempt 2: .*\nattempt 3: .*\n$/
const handlerFailed = /^.* level=WARN .*message="a handler failed" .*\n.*message="a handler failed again" .*\n$/
const saysWhatToInstall = ({ code, stderr }) =>
  code !== 0 && stderr.includes("Run: npm install @requeue/adapter-memory")
    ? undefined
    : "it does not name what to install"

const embedded = ["core", "kit", "adapter-memory"].map(tarballOf)
const ours = [...embedded, tarballOf("opentelemetry")]

const onEveryNode = async () => {
  const tried = []
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
    await misuse(name, node, whole)
    tried.push([name, node])
  }

  const onOld = call(join(old, "node_modules", "node", "bin", "node"), [command, "--version"], whole)
  await verdict("requeue on Node 20", onOld, refuses(2, /needs Node\.js 22\.19 or newer, and this program runs on v20/))
  await bundled(tried, "rolldown", whole)
  await jest(tried, ...embedded, effect)
}

/** One Node is enough to count modules and to find adapters: the other Nodes find them above. */
const onOneNode = async () => {
  await openTelemetry(process.execPath, ...ours, effect)
  await production(process.execPath, ...tarballs, effect)
  await loading(process.execPath, whole)
  await size("@requeue/console", 315_000, whole)
  const editor = async () => ({ code: 0, stderr: "", stdout: (await hovers(whole)).silent.join("\n") })
  await verdict("an editor has something to show of every name that a newcomer meets", editor(), prints(/^$/))
  await shared(process.execPath, ...ours, tarballOf("operations"), effect)
}

// Each alone uses one core.
await Promise.all([onEveryNode(), onOneNode()])
// It uses all cores.
await thirdParty(process.execPath, ...tarballs, effect)

console.log(`${failed()} failed, after ${((performance.now() - start) / 1000).toFixed(0)} s`)
process.exitCode = failed() === 0 ? 0 : 1
