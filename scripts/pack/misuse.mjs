/**
 * Mistakes and unusual setups of a new user, in a project with all packages: each works, or gives a message that says what to do.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { alone, call, must } from "./project.mjs"
import { prints, refuses, verdict } from "./verdict.mjs"

const config = 'export default { brokers: { local: "memory:" }, queues: { webhooks: {} } }'
const yaml = 'brokers: { local: "memory:" }\nqueues: { webhooks: {} }'
const worker = `
  import { loadConfig } from "@requeue/config"
  const { connect, queue } = await loadConfig()
  const webhooks = queue("webhooks")
  const requeue = await connect()
  await requeue.consume(webhooks, webhooks.options, async () => {})
  process.once("SIGTERM", () => requeue.close().then(() => console.log("closed")))
  setTimeout(() => process.kill(process.pid, "SIGTERM"), 1500).unref()`
const byUrl = `
  import { connect } from "@requeue/core/promise"
  const requeue = await connect("memory:")
  await requeue.close()`
const using = `
  import { connect } from "@requeue/core/promise"
  await using requeue = await connect("memory:")
  console.log(typeof requeue.send)`

/** Packages as npm makes them: CommonJS, which `npm init` writes since version 11, and without a type. */
const commonJs = JSON.stringify({ name: "user", type: "commonjs" })
const silent = JSON.stringify({ name: "user" })

const files = {
  "misuse/commonjs/package.json": commonJs,
  "misuse/commonjs/requeue.config.ts": config,
  "misuse/imports/package.json": commonJs,
  "misuse/imports/requeue.config.js": `import "node:fs"\n${config}`,
  "misuse/renamed/package.json": commonJs,
  "misuse/renamed/requeue.config.mts": config,
  "misuse/exports/package.json": commonJs,
  "misuse/exports/requeue.config.js": config.replace("export default", "module.exports ="),
  "misuse/silent/package.json": silent,
  "misuse/silent/requeue.config.ts": config,
  "misuse/worker/package.json": commonJs,
  "misuse/worker/requeue.config.yaml": yaml,
  "misuse/worker/worker.mjs": worker,
  "misuse/bundle/main.mjs": byUrl,
  "misuse/bundle/using.mts": using
}

const stays = prints(/^closed\n$/)
/** The project is as it was for the other tests, plus these files. */
export const misuse = async (name, node, folder) => {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  const command = join(folder, "node_modules", "@requeue", "cli", "dist", "main.js")
  const check = (project) => call(node, [command, "check"], join(folder, "misuse", project))
  const told = (renamed) => refuses(2, new RegExp(`in a package of "type": "commonjs". Rename the file to ${renamed}`))
  const anything = /^/
  await Promise.all([
    verdict(`${name}: a config in TypeScript, in a CommonJS package`, check("commonjs"), told("requeue.config.mts")),
    verdict(`${name}: a config that imports, in a CommonJS package`, check("imports"), told("requeue.config.mjs")),
    verdict(`${name}: the same, renamed as it says`, check("renamed"), prints(/webhooks/, anything)),
    verdict(`${name}: a config of module.exports`, check("exports"), prints(/webhooks/)),
    verdict(`${name}: a config in a package of no type`, check("silent"), prints(/webhooks/, anything)),
    verdict(
      `${name}: a worker on memory stays until SIGTERM`,
      call(node, ["worker.mjs"], join(folder, "misuse/worker")),
      stays
    )
  ])
}

/** Bundled programs: `rolldown` is the bundler's command. */
export const bundled = async (nodes, rolldown, folder) => {
  const bundle = async (file, ...more) => {
    const made = join(folder, "misuse/bundle", `${file}.out.mjs`)
    const options = ["--platform", "node", "--format", "esm", "--file", made, "--log-level", "warn", ...more]
    await must(rolldown, [join(folder, "misuse/bundle", file), ...options], folder)
    return alone(`bundle-of-${file}`, made)
  }
  const main = await bundle("main.mjs")
  const compiled = await bundle("using.mts", "--transform.target", "node22")
  const tells = refuses(
    1,
    /is not installed\. Run: npm install @requeue\/adapter-memory\. In a bundle, pass the package's adapter/
  )
  for (const [name, node] of nodes) {
    await verdict(`${name}: a bundle without an adapter`, call(node, ["main.mjs"], main), tells)
    // The adapter is found from the working directory, as by any program that is not a bundle.
    const run = call(node, [join(compiled, "main.mjs")], folder)
    await verdict(`${name}: await using, compiled for Node 22`, run, prints(/^function\n$/))
  }
}
