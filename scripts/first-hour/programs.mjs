/** The programs of a new user, as an ES module in JavaScript; the other kinds are made from it. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { extract } from "../examples.mjs"
import { root } from "../workspace.mjs"

const [{ lines }] = extract("README.md", readFileSync(join(root, "README.md"), "utf8"))

const worker = `
import { loadConfig } from "@requeue/config"

const { connect, queue } = await loadConfig()
const webhooks = queue("webhooks")
const requeue = await connect()
await requeue.consume(webhooks, webhooks.options, async (message) => {
  if (message.body.bad && process.env.HEALED === undefined) {
    console.log("failed " + message.attempts)
    throw new Error("503 Service Unavailable")
  }
  console.log("handled " + message.body.url)
})
process.once("SIGTERM", () => requeue.close().then(() => console.log("closed")))
const url = process.env.SEND
if (url !== undefined) await requeue.send(webhooks, { url, bad: url === "bad" })
console.log("waiting")
`

const test = `
import assert from "node:assert/strict"
import * as Testing from "@requeue/adapter-memory/testing"
import { sequence } from "@requeue/core/promise"

const broker = await Testing.open()
const retry = { maxRetries: 2, backoff: sequence(["10 seconds", "1 minute"]) }
await broker.requeue.consume("webhooks", { retry }, () => Promise.reject(new Error("503")))
await broker.requeue.send("webhooks", { url: "https://example.com/hook" })
await broker.waitUntilIdle()
assert.equal(broker.now(), 70_000)
assert.equal((await broker.deadLettersOf("webhooks")).length, 1)
await broker.close()
console.log("tested")
`

const toCommonJs = (text) => {
  const required = text
    .replace(/^import \* as (\w+) from (.+)$/gm, "const $1 = require($2)")
    .replace(/^import (.+) from (.+)$/gm, "const $1 = require($2)")
  return `const main = async () => {\n${required}\n}\nmain()`
}
const toTypeScript = (text) => text.replace('queue("webhooks")', 'queue<{ url: string; bad: boolean }>("webhooks")')

const kinds = {
  mjs: (text) => text,
  cjs: toCommonJs,
  mts: toTypeScript
}

/** The kinds of programs, by the extensions of their files. */
export const extensions = Object.keys(kinds)

/** Every program in every kind, by the names of the files; and the config file, whose broker is in a variable. */
export const files = {
  ...Object.fromEntries(
    Object.entries({ hello: lines.join("\n"), worker, test }).flatMap(([name, text]) =>
      Object.entries(kinds).map(([extension, make]) => [`${name}.${extension}`, make(text)])
    )
  ),
  "requeue.config.yaml": `
broker: local
brokers:
  local: "memory:"
  live: "sqs://key:secret@127.0.0.1:\${PORT}?region=eu-west-1"
queues:
  webhooks:
    name: webhooks-\${RUN}
    retry: { maxRetries: 1 }
`
}
