/**
 * A third-party adapter, next to the tarballs: as `requeue-adapter-acme`, which its scheme finds, and as `@acme/requeue-broker`,
 * which must be named and whose order has another id. Its source is `acme/adapter.ts`. It is compiled against the tarballs, and
 * used in every way: by programs, by each command of the command line, and in a bundle. Bundles with drivers of networks are made
 * as well.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { alone, call, must, project } from "./project.mjs"
import { prints, refuses, verdict } from "./verdict.mjs"

const source = (name) => readFileSync(new URL(`acme/${name}`, import.meta.url), "utf8")

const manifest = (name) =>
  JSON.stringify({
    name,
    version: "1.0.0",
    type: "module",
    exports: { types: "./dist/adapter.d.ts", default: "./dist/adapter.js" },
    peerDependencies: { "@requeue/adapter-memory": "*", "@requeue/core": "*", effect: "*" }
  })

const compilerOptions = {
  target: "es2024",
  lib: ["es2024", "esnext.disposable", "dom"],
  module: "nodenext",
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
  declaration: true,
  outDir: "dist",
  types: []
}
const configuration = (file) => JSON.stringify({ compilerOptions: { ...compilerOptions, rootDir: "." }, files: [file] })

const queues = { orders: { retry: { maxRetries: 2 } } }
const named = { brokers: { acme: { url: "acme:", adapter: "@acme/requeue-broker" } }, queues }

/** By the package, the id of the order in its broker. */
const packages = { "requeue-adapter-acme": "order-1", "@acme/requeue-broker": "order-2" }

const files = {
  ...Object.fromEntries(
    Object.entries(packages).flatMap(([name, order]) => [
      [`${name}/package.json`, manifest(name)],
      [`${name}/adapter.ts`, source("adapter.ts").replaceAll("order-1", order)],
      [`${name}/tsconfig.json`, configuration("adapter.ts")]
    ])
  ),
  "consumer.mts": source("consumer.ts"),
  "tsconfig.json": configuration("consumer.mts"),
  "ways.mjs": source("ways.mjs"),
  "bundled.mjs": source("bundled.mjs"),
  ...Object.fromEntries(
    ["rabbitmq", "sqs"].map((name) => [`${name}.mjs`, source("network.mjs").replace("NAME", name)])
  ),
  // JSON is YAML.
  "named.yaml": JSON.stringify(named),
  "plain.yaml": JSON.stringify({ ...named, brokers: { acme: "acme:" } }),
  "held.mjs": `import { adapter } from "@acme/requeue-broker"
export default { brokers: { acme: { url: "acme:", adapter } }, queues: ${JSON.stringify(queues)} }`
}

const ways = [
  "by its scheme: order-1",
  "by its name: order-2",
  "handed over: order-2",
  "handed over, with an option: order-9",
  "named in a file: order-2",
  "held by a module: order-2",
  "handed over to a file: order-2"
]

/** The ways of a command to the adapter, and the id of the order there. */
const targets = [
  ["--url acme:", "order-1"],
  ["--url acme: --adapter @acme/requeue-broker", "order-2"],
  ["--config named.yaml", "order-2"]
]

/** Every command, and a word of its output. */
const commands = {
  plan: () => "orders.dlq",
  verify: () => "orders",
  create: () => "orders",
  check: () => "exact",
  status: () => "orders",
  "send {}": () => "to orders",
  "tail --limit 1": (order) => order,
  "tail --take --limit 1": (order) => order,
  "dead-letters list": () => "letter-1",
  "dead-letters group": () => "permanent",
  "dead-letters peek": () => "letter-1",
  "dead-letters redrive --yes": () => "redriven 1",
  "dead-letters purge --all --yes": () => "removed 1"
}

/** Command lines of another kind. */
const others = {
  "simulate --config named.yaml --queue orders": prints(/2 retries/),
  "completion bash": prints(/requeue/),
  "verify --url acme://empty --queue orders": refuses(1, /^/),
  "status --url acme: --adapter @acme/nothing --queue orders": refuses(2, /Run: npm install @acme\/nothing/),
  "status --url acme:?colour=red --queue orders": refuses(2, /colour/),
  "status --url acme://down --queue orders": refuses(3, /nobody listens/)
}

/** As docs/adapters.md has it: for drivers that are CommonJS. */
const [, text] = /--banner:js='(.*)'/.exec(readFileSync(new URL("../../docs/adapters.md", import.meta.url), "utf8"))
const banner = `--banner:js=${text}`

/** Runs a function for each item, this many at a time. */
const each = async (things, most, run) => {
  const left = [...things]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await run(next)
  }
  await Promise.all(Array.from({ length: most }, work))
}

/** `node` is the Node to run on, `wanted` are the tarballs and their other dependencies. */
export const thirdParty = async (node, ...wanted) => {
  const beside = Object.keys(packages).map((name) => `./${name}`)
  const folder = await project("third-party", files, ...wanted, ...beside, "esbuild@0.28.2")
  for (const name of Object.keys(packages)) await must("tsc", ["-p", name], folder)
  await verdict("third party: declarations against the tarballs", call("tsc", ["-p", "."], folder), prints(/^$/))

  const command = join("node_modules", "@requeue", "cli", "dist", "main.js")
  const requeue = (line) => call(node, [command, ...line.split(" ")], folder)
  const bundle = async (name, ...more) => {
    const file = `bundle-${name}.mjs`
    const options = ["--bundle", "--platform=node", "--format=esm", "--log-level=warning", `--outfile=${file}`, ...more]
    await must(join("node_modules", ".bin", "esbuild"), [`${name}.mjs`, ...options], folder)
    return call(node, ["main.mjs"], alone(`bundle-${name}`, join(folder, file)))
  }
  const runs = [
    ["seven ways to an adapter", () => call(node, ["ways.mjs"], folder), prints(new RegExp(`^${ways.join("\n")}\n$`))],
    ["a bundle in an empty folder", () => bundle("bundled"), prints(/^order-2\n$/)],
    ...["rabbitmq", "sqs"].map((name) => [
      `a bundle with ${name}`,
      () => bundle(name, banner),
      prints(/^ConnectionFailed\n$/)
    ]),
    ...Object.entries(commands).flatMap(([line, expected]) =>
      targets.map(([target, order]) => {
        const whole = `${line} ${target} --queue orders`
        return [`requeue ${whole}`, () => requeue(whole), prints(new RegExp(expected(order)), /^/)]
      })
    ),
    ...Object.entries(others).map(([line, wrong]) => [`requeue ${line}`, () => requeue(line), wrong])
  ]
  await each(runs, 4, ([what, run, wrong]) => verdict(`third party: ${what}`, run(), wrong))
}
