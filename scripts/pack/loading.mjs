/**
 * The modules that an import of each entry loads: little more than `effect/Effect`, few modules of ours, and of drivers what a
 * Lambda function needs before its first event. It counts instead of timing, which gives the same result on any machine.
 */
import { call } from "./project.mjs"
import { verdict } from "./verdict.mjs"

/** Prints the modules that an entry loads, each as its package and its path there. */
export const program = `
  import { registerHooks } from "node:module"
  const load = (url, context, next) => {
    const [, path] = /^file:.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+\\/.*)$/.exec(url) ?? []
    if (path !== undefined) console.log(path)
    return next(url, context)
  }
  registerHooks({ load })
  await import(process.argv[2])`

/** The modules of ours, and those of Effect, of which `effect/Effect` alone has 65. */
const limits = { "@requeue/": 20, "effect/": 85 }

const core = ["@requeue/core", "@requeue/core/promise", "@requeue/core/port"]
const others = ["@requeue/cloudflare", "@requeue/operations", "@requeue/adapter-memory", "@requeue/adapter-sqlite"]
const rabbitmq = ["@requeue/adapter-rabbitmq", "@requeue/adapter-rabbitmq/clean"]
const sqs = ["@requeue/adapter-sqs", "@requeue/adapter-sqs/s3"]

/** The packages that an entry may load besides ours and Effect: none, or those with one of these prefixes. */
const entries = new Map([
  ...[...core, ...rabbitmq, ...sqs, ...others].map((entry) => [entry, /^$/]),
  ["@requeue/adapter-sqs/lambda", /^@(aws-sdk|aws|smithy)\//],
  // Their drivers are loaded immediately.
  ["@requeue/adapter-nsq", /./],
  ["@requeue/adapter-postgres", /^(pg|postgres|xtend|split2|pgpass)/]
])

const wrong =
  (others) =>
  ({ code, stdout }) => {
    if (code !== 0) return "it ended badly"
    const loaded = stdout.trim().split("\n")
    const heavy = loaded.find((path) => /^effect\/dist\/(Schema|Config|Random)\.js$/.test(path))
    if (heavy !== undefined) return `it loads ${heavy}`
    for (const [start, limit] of Object.entries(limits)) {
      const count = loaded.filter((path) => path.startsWith(start)).length
      if (count > limit) return `it loads ${count} modules of ${start}, and should load ${limit} at most`
    }
    const foreign = loaded.filter((path) => !Object.keys(limits).some((start) => path.startsWith(start)))
    const found = foreign.find((path) => !others.test(path))
    if (found !== undefined) return `it loads ${found}`
    return foreign.length === 0 && others.source !== "^$" ? "it does not load its driver" : undefined
  }

/** Loads every entry in a project that has all packages. */
export const loading = async (node, folder) => {
  for (const [entry, others] of entries)
    await verdict(`what ${entry} loads`, call(node, ["loading.mjs", entry], folder), wrong(others))
}
