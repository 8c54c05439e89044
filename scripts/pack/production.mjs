/**
 * The service of docs/production.md, built from the files of the page: as ES modules with version 2 of OpenTelemetry, and as
 * CommonJS with version 3. Its test runs, it answers a request and its probes, and it ends with exit code 0 at SIGTERM.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { call, project } from "./project.mjs"
import { prints, verdict } from "./verdict.mjs"

const page = readFileSync(new URL("../../docs/production.md", import.meta.url), "utf8")
const files = Object.fromEntries(
  [...page.matchAll(/^```\w+ (\S+\.\w+)\n(.*?)^```/gms)].map(([, file, text]) => [file, text])
)
const development = ["typescript@5.9", "@types/node@24"]
for (const name of development) if (!page.includes(name)) throw new Error(`docs/production.md does not install ${name}`)

const driver = `import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"

const listening = async (server) => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return server.address().port
}
const delivered = Promise.withResolvers()
const subscriber = createServer((request, response) => {
  response.end()
  delivered.resolve(request.headers["idempotency-key"])
})
const url = "http://127.0.0.1:" + (await listening(subscriber)) + "/"
const free = createServer()
const port = await listening(free)
free.close()
await once(free, "close")

const service = spawn(process.execPath, ["dist/main.js"], { env: { ...process.env, PORT: String(port) }, stdio: "inherit" })
const ended = once(service, "exit")
const ask = async (path, body) => {
  for (;;) {
    const answer = await fetch("http://127.0.0.1:" + port + path, body && { method: "POST", body }).catch(() => undefined)
    if (answer !== undefined) return answer
    if (service.exitCode !== null) throw new Error("the service has ended")
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
const accepted = await ask("/webhooks", JSON.stringify({ url, payload: 1 }))
const { id } = await accepted.json()
console.log(accepted.status, (await ask("/webhooks", "{}")).status, (await delivered.promise) === id)
console.log((await ask("/livez")).status, (await ask("/readyz")).status, (await ask("/x")).status)
service.kill("SIGTERM")
console.log(await ended)
subscriber.close()
`

const variants = [
  {
    name: "ES modules, OpenTelemetry 2",
    type: "module",
    telemetry: ["@opentelemetry/api@1.9", "@opentelemetry/core@2"]
  },
  {
    name: "CommonJS, OpenTelemetry 3",
    type: "commonjs",
    telemetry: ["@opentelemetry/api@1.10", "@opentelemetry/core@3"]
  }
]

/** `node` is the Node to run on, `wanted` are the tarballs and their other dependencies. */
export const production = async (node, ...wanted) => {
  for (const { name, telemetry, type } of variants) {
    for (const one of telemetry) if (!page.includes(one)) throw new Error(`docs/production.md does not install ${one}`)
    const manifest = JSON.stringify({ name: "webhooks", private: true, type })
    const all = { ...files, "package.json": manifest, "driver.mjs": driver }
    const folder = await project(`production-${type}`, all, ...wanted, ...development, ...telemetry)
    const run = (...args) => call(node, args, folder)
    const command = join("node_modules", "@requeue", "cli", "dist", "main.js")
    await verdict(`production, ${name}: tsc`, run("node_modules/typescript/bin/tsc"), prints(/^$/))
    await verdict(`production, ${name}: its test`, run("--test", "dist/deliver.test.js"), prints(/pass 1\b/))
    await verdict(
      `production, ${name}: the service`,
      run("driver.mjs"),
      prints(/^202 400 true\n200 200 404\n\[ 0, null \]\n$/)
    )
    await verdict(`production, ${name}: requeue check`, run(command, "check"), prints(/webhooks/))
  }
}
