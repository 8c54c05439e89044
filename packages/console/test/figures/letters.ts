/**
 * Measures a look at many dead letters: when the page, the first causes and the last ones came, and the memory of the console's
 * process, which is `requeue console` as it was built.
 *
 *     node --conditions=@requeue/source test/figures/letters.ts URL COUNT BYTES [LOOKS] [LIVE]
 */
import { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import * as Queues from "./queues.ts"

const [url = "memory:", count = "1000", size = "1000", looks = "1", lives = "1"] = process.argv.slice(2)
const queues = Array.from({ length: Number(looks) }, (_, n) => `letters-${count}-${size}-${n}`)

/** Fills the queues up to the count. */
const fill = Effect.gen(function* () {
  const config = yield* Queues.configured(url, queues)
  const body = new Uint8Array(Number(size)).fill(120)
  const page = Math.max(1, Math.min(500, Math.floor(8e6 / Number(size))))
  yield* Effect.gen(function* () {
    const { admin, publish } = yield* Broker.Broker
    for (const queue of queues) {
      const { ready = 0 } = yield* admin.counts(`${queue}.dlq`)
      for (let n = ready; n < Number(count); n += page) {
        const some = Array.from({ length: Math.min(page, Number(count) - n) }, (_, at) => n + at)
        yield* publish(some.map((n) => Queues.letter(queue, n, body)))
      }
    }
  }).pipe(Effect.provide(config.layer()))
})

/** The most memory that a process has had, in MB. */
const peak = (pid: number): number =>
  Math.round(Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024)

const post = async (base: string, path: string, page: string) => {
  const token = /name="token"\s+value="([^"]+)"/.exec(page)![1]!
  const [, queue] = /queue=([^&]+)/.exec(path)!
  const body = new URLSearchParams({ token, broker: "broker", queue: queue!, limit: "100000" })
  const headers = { origin: base.slice(0, -1), "content-type": "application/x-www-form-urlencoded" }
  await fetch(`${base}look`, { method: "POST", headers, body, redirect: "manual" })
}

/** Milliseconds that a look may take. */
const longest = 300_000

/** Looks at a queue as a browser does, which reads what streams. */
const look = async (base: string, queue: string) => {
  const path = `dead-letters?broker=broker&queue=${queue}.dlq`
  const begun = performance.now()
  const since = () => Math.round(performance.now() - begun)
  const page = await (await fetch(base + path)).text()
  const shown = since()
  if (!page.includes("data-live")) await post(base, path, page)
  const asked = since()
  let [first, streamed] = [0, 0]
  let text = ""
  // A stream lasts for a minute, and is asked for again.
  while (!text.includes("event: over") && since() < longest) {
    const open = await fetch(`${base}live/look?broker=broker&queue=${queue}.dlq`)
    const decoder = new TextDecoder()
    for await (const chunk of open.body!) {
      text = text.slice(-400_000) + decoder.decode(chunk, { stream: true })
      streamed += chunk.length
      if (first === 0 && text.includes("<tbody>")) first = since() - asked
    }
  }
  const told = /Browsed[^<]*/.exec(text)?.[0]
  // A look that failed has looked at nothing as well.
  const failed = text.includes("The browse failed.")
  return { page: shown, first, all: since() - asked, streamed, failed, told: told ?? text.slice(-1200) }
}

await Effect.runPromise(Effect.scoped(fill))
const config = await Effect.runPromise(Queues.configured(url, queues))
const main = fileURLToPath(new URL("../../../cli/dist/main.js", import.meta.url))
const child = spawn(process.execPath, [main, "console", "--port", "0", "--json"], {
  cwd: dirname(config.file),
  stdio: ["ignore", "pipe", "ignore"]
})
const [told] = (await once(child.stdout, "data")) as [Uint8Array]
const { url: base } = JSON.parse(new TextDecoder().decode(told)) as { readonly url: string }
// Nothing is connected, and no adapter loaded, before somebody has browsed.
await (await fetch(base)).text()
const before = peak(child.pid!)
const watchers = new AbortController()
for (let n = 1; n < Number(lives); n++) {
  const { body } = await fetch(`${base}live/overview`, { signal: watchers.signal })
  void (async () => {
    for await (const _ of body!) if (watchers.signal.aborted) return
  })().catch(() => {})
}
const seen = await Promise.all(queues.map((queue) => look(base, queue)))
console.log(JSON.stringify({ before, peak: peak(child.pid!), seen }))
watchers.abort()
child.kill("SIGKILL")
process.exit(0)
