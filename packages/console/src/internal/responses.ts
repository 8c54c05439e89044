/** Responses to requests. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Asset } from "./assets.ts"
import * as SecurityHeaders from "./guard/securityHeaders.ts"
import type { Html } from "./html.ts"
import type { Download, Live, State } from "./visit.ts"

/** Milliseconds between two updates of a stream. */
const interval = 250

/** Milliseconds without an update after which a comment keeps the stream open in proxies. */
const heartbeat = 15_000

/** Makes the response for a page. */
export const page = (body: Html, status = 200, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(body.text, {
    status,
    headers: { ...SecurityHeaders.all, ...headers, "content-type": "text/html; charset=utf-8" }
  })

/** Makes a redirect after a form to a page, which the browser requests by `GET`. */
export const seeOther = (location: string): Response =>
  new Response(null, { status: 303, headers: { ...SecurityHeaders.all, location } })

/** Makes the response for a file. */
export const asset = ({ body, type }: Asset): Response =>
  new Response(body, { headers: { ...SecurityHeaders.asset, "content-type": type } })

/** Returns a name that is safe in file systems and headers. */
const safe = (name: string): string =>
  name
    .replaceAll(/[^\w.-]+/g, "_")
    .slice(-120)
    .replace(/^[.-]+/, "_")

/** Makes the response for lines of JSON, as a file. */
export const download = ({ body, name }: Download): Response =>
  new Response(body, {
    headers: {
      ...SecurityHeaders.all,
      "content-type": "application/x-ndjson; charset=utf-8",
      "content-disposition": `attachment; filename="${safe(name)}"`
    }
  })

/** Milliseconds until a stream ends. Then the browser opens it again, and the console authorizes it again. */
const lifetime = 60_000

/** Makes the response for a stream of events; for `HEAD`, only its headers. */
export const stream = (body: ReadableStream<Uint8Array> | null): Response =>
  new Response(body, {
    headers: { ...SecurityHeaders.all, "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" }
  })

const event = (name: string, text: string): string =>
  `event: ${name}\n${text
    .split("\n")
    .map((line) => `data: ${line}`)
    .join("\n")}\n\n`

/** Runs an effect in the context of the console. */
export type Run = <A>(effect: Effect.Effect<A>, options: Effect.RunOptions) => Promise<A>

/**
 * Returns a function that makes an event of the changes since its last call. Without changes, the event is an empty text.
 */
const changes = () => {
  const last = new Map<string, string>()
  return (state: State): string => {
    const all = "body" in state ? [["", state.body] as const] : [...state.parts]
    const changed = all.filter(([id, { text }]) => last.get(id) !== text)
    for (const [id, { text }] of changed) last.set(id, text)
    const text = changed.map(([, part]) => part.text).join("")
    return text === "" ? "" : event("body" in state ? "update" : "parts", text)
  }
}

/**
 * Streams server-sent events of a live page: `update` with all its HTML, `parts` with the HTML of changed elements, and
 * `over` at the end. The stream ends with the console as well.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export const events = (
  { read }: Live,
  { closing, onEnd, run }: { readonly run: Run; readonly closing: AbortSignal; readonly onEnd: () => void }
): Response => {
  let [idle, isOver] = [0, false]
  const changed = changes()
  const abandoned = new AbortController()
  /** Returns the next text for the stream; `undefined` at its end. */
  const next: Effect.Effect<string | undefined> = Effect.gen(function* () {
    while (!isOver) {
      const current = read(yield* Clock.currentTimeMillis)
      isOver = current.isOver
      const told = changed(current)
      const text = isOver ? `${told}${event("over", "")}` : told
      if (text !== "") return text
      yield* Effect.sleep(interval)
      idle += interval
      if (idle < heartbeat) continue
      idle = 0
      return ": open\n\n"
    }
    return undefined
  })
  const encoder = new TextEncoder()
  const end = (close: () => void) => {
    if (abandoned.signal.aborted) return
    abandoned.abort()
    onEnd()
    close()
  }
  const body = new ReadableStream<Uint8Array>(
    {
      // Also for a stream that is not read.
      start: (controller) => {
        const { signal } = abandoned
        const over = () => end(() => controller.close())
        run(Effect.sleep(lifetime), { signal }).then(over, over)
        closing.addEventListener("abort", over, { signal })
      },
      pull: async (controller) => {
        const text = await run(next, { signal: abandoned.signal }).catch(() => undefined)
        if (text === undefined) end(() => controller.close())
        else controller.enqueue(encoder.encode(text))
      },
      cancel: () => end(() => undefined)
    },
    { highWaterMark: 0 }
  )
  return stream(body)
}
