/** A config file of many queues, each with its dead-letter queue, which exist on a broker. */
import { Configuration } from "@requeue/config"
import { Broker } from "@requeue/core"
import { Metadata, Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The names of so many queues. */
export const names = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, n) => `figure-${String(n).padStart(3, "0")}`)

/** A config file of these queues on the broker at a URL. */
export const configured = (url: string, queues: ReadonlyArray<string>) => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-figures-"))
  const document = { brokers: { broker: url }, queues: Object.fromEntries(queues.map((name) => [name, {}])) }
  writeFileSync(join(folder, "requeue.config.json"), JSON.stringify(document))
  return Configuration.load({ file: join(folder, "requeue.config.json"), environment: {} })
}

/** Makes the queues and their dead-letter queues, each with a message. */
export const filled = (config: Configuration.Configuration, queues: ReadonlyArray<string>) =>
  Effect.flatMap(Broker.Broker, ({ publish }) =>
    Effect.forEach(
      queues.flatMap((name) => [name, `${name}.dlq`]),
      (queue) => {
        const message = Outgoing.make({ queue, id: "one", body: new Uint8Array(10), headers: {}, delay: 0 }, Date.now())
        return publish([message])
      },
      { concurrency: 16, discard: true }
    )
  ).pipe(Effect.provide(config.layer()), Effect.scoped)

/** A dead letter of a queue, as its consumer gives it up. */
export const letter = (queue: string, n: number, body: Uint8Array): Outgoing.Outgoing => {
  const now = Date.now()
  const made = Outgoing.make({ queue: `${queue}.dlq`, id: `order-${n}`, body, headers: {}, delay: 0 }, now)
  const deadLetter: Metadata.DeadLetter = {
    queue,
    attempts: 4,
    reason: "retries-exhausted",
    at: now,
    error: { name: "Error", message: `HTTP ${500 + (n % 5)} from shop.example` }
  }
  return { ...made, metadata: { ...made.metadata, deadLetter } }
}
