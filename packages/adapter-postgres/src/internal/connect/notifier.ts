/**
 * Wakes the consumers of other processes by NOTIFY. The notifications of one turn of the event loop are a separate statement: a
 * transaction that notifies holds a lock of the whole server until its commit is on the disk, and sends would wait for each other.
 */
import type { Timers } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../PostgresOptions.ts"
import { quoted } from "../../PostgresSchema.ts"
import type { Session } from "../client.ts"
import type { Statements } from "../statements.ts"
import type { Connections } from "./connections.ts"
import * as Gather from "./gather.ts"

/** A queue, and when its first message is due. */
export type News = readonly [queue: string, from: number]

interface Notifier {
  readonly notify: (news: News) => void
  /** Starts to wake this process' consumers when other processes notify. */
  readonly listen: () => void
}

/** The longest payload that PostgreSQL accepts is 7,999 bytes. */
const maxBytes = 7900

/** Splits wake-ups into payloads. Of each queue, the earliest counts. A queue with too long a name is left out: its consumers poll. */
export const payloads = (news: ReadonlyArray<News>): ReadonlyArray<string> => {
  const first = new Map<string, number>()
  for (const [queue, from] of news) first.set(queue, Math.min(from, first.get(queue) ?? from))
  const all: Array<string> = []
  let [parts, size]: [Array<string>, number] = [[], 2]
  for (const part of [...first].map((each) => JSON.stringify(each))) {
    const bytes = Buffer.byteLength(part) + 1
    if (bytes > maxBytes) continue
    if (size + bytes > maxBytes) {
      all.push(`[${parts.join()}]`)
      parts = []
      size = 2
    }
    parts.push(part)
    size += bytes
  }
  return parts.length === 0 ? all : [...all, `[${parts.join()}]`]
}

/** Reads a payload. Another program may use the same channel. */
export const newsOf = (payload: string): ReadonlyArray<News> => {
  try {
    const all: unknown = JSON.parse(payload)
    const isNews = (each: unknown): each is News =>
      Array.isArray(each) && typeof each[0] === "string" && typeof each[1] === "number"
    return Array.isArray(all) ? all.filter(isNews) : []
  } catch {
    return []
  }
}

interface Dependencies {
  readonly settings: Settings
  readonly statements: Statements
  readonly timers: Timers.Timers
  readonly connections: Connections
  /** Wakes the consumers of this process; `undefined`: those of all queues. */
  readonly wake: (queue?: string, from?: number) => void
}

export const make = ({
  connections,
  settings,
  statements,
  timers,
  wake
}: Dependencies): Effect.Effect<Notifier, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { notify, schema, timeout } = settings
    if (!notify) return { notify: () => undefined, listen: () => undefined }
    let isListening = false
    let own: number | undefined
    const listening = async (session: Session): Promise<void> => {
      await session.run(`LISTEN ${quoted(schema)}`)
      wake()
    }
    const lane = yield* connections({
      name: "notify",
      onGain: (session) => {
        own = session.process
        // Without it, consumers poll.
        if (isListening) void listening(session).catch(() => undefined)
      },
      onNotification: (payload, process) => {
        if (process === own) return
        for (const [queue, from] of newsOf(payload)) wake(queue, from)
      }
    })
    const send = Gather.make<News, void>({
      lane,
      timers,
      timeout,
      maxWeight: 1000,
      run: async (session, news) => {
        for (const payload of payloads(news)) await session.query(statements.notify, [schema, payload])
        return []
      }
    })
    const listen = Gather.make<void, void>({
      lane,
      timers,
      timeout,
      run: async (session) => {
        await listening(session)
        return []
      }
    })
    return {
      notify: (news) => send(news, 1, { operation: "notify" }, () => undefined),
      listen: () => {
        if (isListening) return
        isListening = true
        listen(undefined, 1, { operation: "listen" }, () => undefined)
      }
    }
  })
