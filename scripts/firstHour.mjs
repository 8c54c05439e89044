/**
 * `npm run test:first-hour` replays the first hour of a new user, from the packages as they would be published, on each runtime
 * that npm has: install, hello, a config file, a second broker, a test, a deploy (SIGTERM), dead letters and their redrive; as an
 * ES module, from CommonJS and in TypeScript. The second broker is an SQS server from npm. At the end it prints the times, and
 * every message on standard error.
 *
 * `npm run test:first-hour -- node22 bun` replays it on some runtimes.
 */
import { globSync } from "node:fs"
import { join } from "node:path"
import { extensions, files } from "./first-hour/programs.mjs"
import { start } from "./first-hour/process.mjs"
import { home, project } from "./pack/project.mjs"
import { failed, prints, verdict } from "./pack/verdict.mjs"
import { explain } from "./run.mjs"
import { pack } from "./tarballs.mjs"

/** By name: its package, its program in there, and its arguments before a file. */
const runtimes = {
  node22: { wanted: "node@22.19.0", path: "node/bin/node", before: [] },
  node24: { wanted: "node@24", path: "node/bin/node", before: [] },
  node26: { wanted: "node@26", path: "node/bin/node", before: [] },
  bun: { wanted: "bun@1", path: "bun/bin/bun.exe", before: [] },
  deno: {
    wanted: "deno@2",
    path: "deno/deno",
    before: ["run", "--allow-all", "--node-modules-dir=manual", "--no-check"]
  }
}
const asked = process.argv.slice(2)
const chosen = Object.entries(runtimes).filter(([name]) => asked.length === 0 || asked.includes(name))
if (chosen.length === 0) {
  console.error(`No runtime ${asked.join(", ")}. There are: ${Object.keys(runtimes).join(", ")}`)
  process.exit(2)
}

const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`
const messages = new Map()
/** Keeps a program's standard error, without what differs from run to run. */
const note = (where, { stderr }) => {
  for (const line of stderr.split("\n").filter((each) => each.trim() !== "")) {
    const text = line.replaceAll(/timestamp=\S+|\(node:\d+\)|fiber=\S+/g, "…").replaceAll(home, "")
    messages.set(text, (messages.get(text) ?? new Set()).add(where))
  }
}
const step = async (name, run, wrong) => {
  const since = performance.now()
  const result = await run()
  note(name, result)
  await verdict(`${name}, ${seconds(since)}`, result, wrong)
}

const tarballs = join(home, "tarballs")
const packed = pack(tarballs)
if (packed.status !== 0) {
  explain(packed)
  process.exit(1)
}
const wanted = globSync("*.tgz", { cwd: tarballs }).map((file) => join(tarballs, file))
const since = performance.now()
const user = await project(
  "user",
  { ...files, "package.json": '{ "name": "user", "type": "commonjs" }' },
  ...wanted,
  "effect@^4.1.0"
)
console.log(`installed, ${seconds(since)}`)
const server = await project("server", {}, "fauxqs@2.4.1")
const port = String(20_000 + (process.pid % 20_000))
const settings = { FAUXQS_PORT: port, FAUXQS_HOST: "127.0.0.1", FAUXQS_LOGGER: "false" }
const sqs = start(process.execPath, ["node_modules/fauxqs/dist/cli.js"], server, settings, "server")
process.on("exit", () => void sqs.stop())
const command = join("node_modules", "@requeue", "cli", "dist", "main.js")

/** Starts a worker, waits for its output, and stops it as a platform does. */
const work = (program, before, extension, environment, until) => async () => {
  const running = start(program, [...before, `worker.${extension}`], user, environment)
  await running.says(until)
  return await running.stop()
}

for (const [runtime, { before, path, wanted: name }] of chosen) {
  const folder = await project(runtime, {}, name)
  const program = join(folder, "node_modules", path)
  const run = (args, environment) => () => start(program, [...before, ...args], user, environment).ended
  for (const extension of extensions) {
    const on = (what) => `${runtime} ${extension}: ${what}`
    const local = { RUN: `${runtime}-${extension}`, PORT: port }
    const live = { ...local, REQUEUE_BROKER: "live" }
    const requeue = (...args) => run([command, ...args, "--queue", "webhooks"], live)
    const worker = (environment, until) => work(program, before, extension, environment, until)
    const hello = prints(/^attempt 1: .*\nattempt 2: .*\nattempt 3: .*\n$/, /a handler failed/)
    await step(on("hello"), run([`hello.${extension}`]), hello)
    await step(on("test"), run([`test.${extension}`]), prints(/^tested\n$/))
    await step(on("a worker on memory waits, and ends at SIGTERM"), worker(local, "waiting"), prints(/closed\n$/))
    await step(
      on("the same on SQS"),
      worker({ ...live, SEND: "good" }, "handled good"),
      prints(/handled good\n[^]*closed\n$/, /^/)
    )
    await step(on("a message that fails"), worker({ ...live, SEND: "bad" }, "failed 2"), prints(/closed\n$/, /^/))
    await step(
      on("dead letters"),
      requeue("dead-letters", "list"),
      prints(/503 Service Unavailable/, /note: sqs counts a look/)
    )
    await step(on("redrive"), requeue("dead-letters", "redrive", "--yes"), prints(/redriven 1/, /^/))
    await step(
      on("handled after all"),
      worker({ ...live, HEALED: "1" }, "handled bad"),
      prints(/handled bad\n[^]*closed\n$/, /^/)
    )
  }
}

await sqs.stop()
console.log("\nSeen on standard error:")
for (const [text, where] of messages) console.log(`${text}  [${where.size} times, first at ${[...where][0]}]`)
console.log(`\n${failed()} failed`)
process.exitCode = failed() === 0 ? 0 : 1
