/**
 * Purposes: the reasons for the entries of calls, which SQS does not know. The open calls of a process at its port show them when
 * it passes the entries to its driver, however late these arrive.
 */
import type { Delivery } from "../History.ts"
import type * as Api from "../servers/sqs/Api.ts"
import * as Receipts from "../servers/sqs/Receipts.ts"
import * as Sources from "../world/Sources.ts"
import type { World } from "../world/World.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"

/** The purposes of all entries. */
export interface Purposes {
  /** A process passes a call to its driver. */
  readonly note: (call: Api.Call) => void
  /** A message is delivered to a process. */
  readonly given: (process: string, key: number, delivery: Delivery) => void
  /** An entry is stored. Returns the delivery whose settlement it serves; `undefined` for a send. */
  readonly stored: (entry: Api.Entry) => Delivery | undefined
  /** Whether an entry extends a lease. Otherwise it returns a message. */
  readonly extends: (entry: Api.Entry) => boolean
  readonly purges: (entry: Api.Entry) => boolean
}

/** No entry is known. */
export const make = (world: World): Purposes => {
  const { activity } = world
  const sources = Sources.make(world)
  const served = new WeakMap<Api.Entry, Delivery>()
  const extending = new WeakSet<Api.Entry>()
  const purging = new WeakSet<Api.Entry>()

  const isExtension = (process: string, { ReceiptHandle = "", VisibilityTimeout = 0 }: Api.Entry): boolean =>
    VisibilityTimeout > 0 &&
    (activity.has("extend", process, Receipts.deliveryOf(ReceiptHandle)) || activity.has("browse", process))

  const send = (process: string, entry: Api.Entry, queue: string): void => {
    // The driver's next attempt has the same entries.
    if (served.has(entry)) return
    const source = sources.find(process, Parcels.fromEntry(entry), queue, { copied: Parcels.copied(entry) })
    if (source === undefined) return
    served.set(entry, source)
    sources.sent(source)
  }

  return {
    note: ({ action, body: { Entries = [] }, client = "", queue }) => {
      for (const entry of Entries) {
        if (action === "SendMessageBatch") send(client, entry, Names.inWorld(queue))
        else if (action === "ChangeMessageVisibilityBatch" && isExtension(client, entry)) extending.add(entry)
        else if (action === "DeleteMessageBatch" && activity.has("purge", client)) purging.add(entry)
      }
    },
    given: sources.given,
    stored: (entry) => {
      const source = served.get(entry)
      if (source !== undefined) sources.stored(source)
      return source
    },
    extends: (entry) => extending.has(entry),
    purges: (entry) => purging.has(entry)
  }
}
